#!lua flags=allow-oom
-- Contract 1, "Asynchronous calls": a 202 answer is not a disconnect. Runs whose callers got a 202 answer while they waited lose their
-- `onDisconnect=cancel`, and continue without a reader.
--
-- KEYS  1  the project's prefix
-- ARGV  run ids. An unknown run, and a run with a timer instead of `cancel`, does not change. The change means nothing to an ended run.
-- Returns the number of changed runs
--@include run: without_cancel
local changed = 0
for _, id in ipairs(ARGV) do
  local call = redis.call('HGET', K.run .. id, 'call')
  call = without_cancel(call or '')
  if call then
    redis.call('HSET', K.run .. id, 'call', call)
    changed = changed + 1
  end
end
return reply(changed)
