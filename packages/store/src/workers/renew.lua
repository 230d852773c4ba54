#!lua flags=allow-oom
-- Renews the leases of a worker and of the attempts that it holds, and records the apps that it serves. A repeated call does no harm.
--
-- KEYS  1  the project's prefix
-- ARGV  1  worker
--       2  lease (ms)
--       3  number of apps, then the apps. A queue of a deployed version (parts/run: queue_of) may stand in the place of an app: the
--          worker still has this version.
--       runs  per run: id, token
-- Returns {unknown (1/0), per run {held (1/0), number of the last item that readers took, cancel (1/0)}}. The worker must announce its
-- apps if unknown is 1: the store did not know the worker, or an app is not known or is stored as broken by another worker.
-- The answer repeats acknowledgements and cancels, because live messages may be lost.
--@include run: is_of, owner_of
local worker, lease, app_count = unpack(ARGV, 1, 3)
lease, app_count = tonumber(lease), tonumber(app_count)
-- The worker is new, or its lease had ended and reap removed it from the waiting workers. Now queued or future runs wake it again.
local new = redis.call('ZADD', K.workers, now + lease, worker) == 1
local unknown = new
for i = 4, 3 + app_count do
  local app = ARGV[i]
  redis.call('ZREMRANGEBYSCORE', K.serving .. app, '-inf', now)
  redis.call('ZADD', K.serving .. app, now + lease, worker)
  local _, version = owner_of(app)
  if version == '' then
    local known = redis.call('HGET', K.apps, app)
    if not known or cjson.decode(known).state == 'broken' then unknown = true end
  else
    -- The last worker that has a version leaves no key behind.
    redis.call('PEXPIRE', K.serving .. app, 10 * lease)
  end
  if new then
    redis.call('ZADD', K.waiting .. app, now_us, worker)
    redis.call('HSET', K.took .. worker, 'waits ' .. app, '1')
  end
end
local answers = {}
for i = 4 + app_count, #ARGV, 2 do
  local id, token = unpack(ARGV, i, i + 1)
  local state, attempt, position, cancel = unpack(redis.call('HMGET', K.run .. id, 'state', 'attempt', 'taken', 'cancel'), 1, 4)
  local held = state == 'running' and is_of(attempt, token)
  if held then redis.call('ZADD', K.leases, now + lease, id) end
  answers[#answers + 1] = {held and 1 or 0, tonumber(position or 0), cancel and 1 or 0}
end
return reply({unknown and 1 or 0, answers})
