#!lua flags=allow-oom
-- Begins one attempt of a run's delivery: one at a time, under a lease.
--
-- KEYS  1 the project's prefix
-- ARGV  1 run id  2 the attempt that the job stands for  3 token of this attempt  4 lease (ms)
-- Returns {state: begun | settled | busy | gone, url, sealed secret, ended (ms), the envelope's bytes where they are kept}
--@include clock
local id, attempt, token, lease = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local key = K.run .. id
local f = redis.call('HMGET', key, 'delivery', 'tries', 'hold', 'held', 'hook', 'secret', 'ended', 'envelope')
if not f[1] then return {'gone'} end
if f[1] ~= 'pending' or attempt <= tonumber(f[2] or 0) then return {'settled'} end
if f[3] and f[3] ~= token and tonumber(f[4]) > now then return {'busy'} end
redis.call('HSET', key, 'hold', token, 'held', now + lease)
redis.call('ZADD', K.due, now + lease, id)
return {'begun', f[5], f[6] or '', tonumber(f[7]), f[8] or ''}
