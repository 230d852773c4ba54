#!lua flags=allow-oom
-- Contract 7, "Versions": moves the project's roll-outs on whose workers have died or whose time is over. Repeats do no harm.
--
-- KEYS  1  the project's prefix
-- Returns the number of roll-outs that have ended here
--@include roll-outs: settle
local ended = 0
for _, app in ipairs(redis.call('SMEMBERS', K.rolling)) do ended = ended + settle(app, '') end
return reply(ended)
