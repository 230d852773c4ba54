#!lua flags=allow-oom
-- Renews a worker's lease and those of the attempts it really holds, and says which apps it serves. Harmless when repeated.
--
-- KEYS  1 the project's prefix
-- ARGV  1 worker  2 lease (ms)  3 how many apps follow, the apps  then per run: id, token
-- Returns {unknown (1: the store did not know this worker, or not any more; or an app of its is not known, or as broken, which is another
--       worker's word), per run {held (1/0), number that readers took, cancel (1/0)}}: the second way of acknowledgements and cancels.
--@include clock
--@include fence
local worker, lease, napps = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
-- New here, or back after its lease ran out, when reap forgot that it waits: it is woken again by what is queued or comes.
local new = redis.call('ZADD', K.workers, now + lease, worker) == 1
local unknown = new
for i = 4, 3 + napps do
  local app = ARGV[i]
  redis.call('ZREMRANGEBYSCORE', K.serving .. app, '-inf', now)
  redis.call('ZADD', K.serving .. app, now + lease, worker)
  local known = redis.call('HGET', K.apps, app)
  if not known or string.find(known, '"state":"broken"', 1, true) then unknown = true end
  if new then
    redis.call('ZADD', K.waiting .. app, now_us, worker)
    redis.call('HSET', K.took .. worker, 'waits ' .. app, '1')
  end
end
local answers = {}
for i = 4 + napps, #ARGV, 2 do
  local f = redis.call('HMGET', K.run .. ARGV[i], 'state', 'attempt', 'taken', 'cancel')
  local held = f[1] == 'running' and is_of(f[2], ARGV[i + 1])
  if held then redis.call('ZADD', K.leases, now + lease, ARGV[i]) end
  answers[#answers + 1] = {held and 1 or 0, tonumber(f[3] or 0), f[4] and 1 or 0}
end
return reply({unknown and 1 or 0, answers})
