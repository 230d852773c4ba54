#!lua flags=allow-oom
-- Contract 7, "Apps": counts the queued and the running runs of apps.
--
-- KEYS  1  the project's prefix
-- ARGV  1  running runs examined at most
--       apps
-- Returns per app its queued runs and its running runs. A repeat changes nothing.
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
local counts = {}
for n = 2, #ARGV do
  counts[#counts + 1] = queued[ARGV[n]] or 0
  counts[#counts + 1] = running[ARGV[n]] or 0
end
return reply(counts)
