#!lua flags=allow-oom
-- Records an attempt before anything follows from it, and what is next: delivered, failed for good, or another attempt.
--
-- KEYS  1 the project's prefix
-- ARGV  1 run id  2 attempt  3 token of this attempt  4 its record (JSON)  5 next: delivered | failed | pending
--       6 when the next attempt is due (ms, for pending)  7 time after that in which it must have begun (ms)
-- Returns 1 (also when this attempt was recorded before), or 0: superseded
--@include clock
local id, attempt, token, next_state = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[5]
local key = K.run .. id
local f = redis.call('HMGET', key, 'hold', 'tries', 'keep', 'items', 'recorded', 'claim')
if f[5] == token then return 1 end
if f[1] ~= token then return 0 end
redis.call('RPUSH', K.attempts .. id, ARGV[4])
redis.call('HDEL', key, 'hold', 'held')
redis.call('HSET', key, 'tries', attempt, 'delivery', next_state, 'recorded', token)
if next_state == 'pending' then
  redis.call('HSET', key, 'next', ARGV[6])
  redis.call('ZADD', K.due, ARGV[6] + ARGV[7], id)
else
  redis.call('HDEL', key, 'next', 'secret', 'envelope')
  redis.call('ZREM', K.due, id)
  redis.call('PEXPIRE', key, f[3])
  redis.call('PEXPIRE', K.attempts .. id, f[3])
  if f[6] then redis.call('PEXPIRE', K.idempotency .. f[6], f[3]) end
  if tonumber(f[4] or 0) > 0 then redis.call('PEXPIRE', K.items .. id, f[3]) end
end
return 1
