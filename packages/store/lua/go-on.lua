#!lua flags=allow-oom
-- Runs whose callers were answered 202 while they waited: such a caller has not left, so `cancel` with the last reader becomes `go on`.
--
-- KEYS  1 the project's prefix
-- ARGV  ids of runs; one that is unknown, has ended, or is to be cancelled after a time, stays as it is
-- Returns how many go on now that would not have
local changed = 0
for _, id in ipairs(ARGV) do
  local call = redis.call('HGET', K.run .. id, 'call')
  local before, after = string.match(call or '', '^(%S+ %S+ %d+ %d+) 0 (.+)$')
  if before then
    redis.call('HSET', K.run .. id, 'call', before .. ' - ' .. after)
    changed = changed + 1
  end
end
return reply(changed)
