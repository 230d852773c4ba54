#!lua flags=allow-oom
-- Contract 7, "Apps": counts the open runs of apps, and their replicas on all live workers.
--
-- KEYS  1  the project's prefix
-- ARGV  1  running runs examined at most
--       apps
-- Returns per app its queued runs, its running runs, its ready replicas and its desired replicas. A repeat changes nothing.
--@include run: target_of
local running = {}
for _, id in ipairs(redis.call('ZRANGE', K.leases, 0, ARGV[1] - 1)) do
  local call = redis.call('HGET', K.run .. id, 'call')
  local app = call and target_of(call)
  if app then running[app] = (running[app] or 0) + 1 end
end
-- A queue has the name of its app, or `<app>@<version>`.
local queued = {}
for _, queue in ipairs(redis.call('HKEYS', K.queues)) do
  local app = string.match(queue, '^[^@]+')
  queued[app] = (queued[app] or 0) + redis.call('ZCARD', K.queue .. queue)
end
local function replicas_of(app)
  local ready, desired = 0, 0
  local by_worker = redis.call('HGETALL', K.replicas .. app)
  for n = 1, #by_worker, 2 do
    local lease = tonumber(redis.call('ZSCORE', K.workers, by_worker[n]) or 0)
    local one_ready, one_desired = string.match(by_worker[n + 1], '^(%d+) (%d+)$')
    if lease > now then ready, desired = ready + one_ready, desired + one_desired end
  end
  return ready, desired
end
local counts = {}
for n = 2, #ARGV do
  local app = ARGV[n]
  local ready, desired = replicas_of(app)
  for _, count in ipairs({queued[app] or 0, running[app] or 0, ready, desired}) do counts[#counts + 1] = count end
end
return reply(counts)
