#!lua flags=allow-oom
-- Contract 7, "Versions": moves the project's roll-outs on whose workers have died or whose time is over. Repeats do no harm.
-- It also writes to the audit log which roll-outs the service has undone since the last round.
--
-- KEYS  1  the project's prefix
-- ARGV  1  number of entries that the audit log keeps
-- Returns {number of roll-outs that have ended here, new entries of the audit log}. The time of these entries is a number (ms).
--@include roll-outs: settle
local ended = 0
for _, app in ipairs(redis.call('SMEMBERS', K.rolling)) do ended = ended + settle(app, '') end
local entries = {}
for _, undone in ipairs(redis.call('LRANGE', K.undone, 0, -1)) do
  local time, app, version, reason = string.match(undone, '^(%d+) (%S+) (%S+) (.*)$')
  if time then
    entries[#entries + 1] = string.format('{"time":%s,"sub":"service","action":"version.undo","target":%s,"address":"","reason":%s}',
      time, cjson.encode(app .. '@' .. string.sub(version, 1, 12)), cjson.encode(reason))
  end
end
if #entries > 0 then
  redis.call('LPUSH', K.audit, unpack(entries))
  redis.call('LTRIM', K.audit, 0, ARGV[1] - 1)
end
redis.call('DEL', K.undone)
return reply({ended, entries})
