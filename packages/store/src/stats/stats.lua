#!lua flags=allow-oom
-- Contract 5, "Statistics": adds up an app's counters of ended runs (parts/ending.lua) by steps of minutes.
--
-- KEYS  1  the project's prefix
-- ARGV  1  app
--       2  start of the first step (ms, a whole minute)
--       3  minutes of a step
--       4  number of steps
-- Returns per step with ended runs {number of the step from 0, fields and their values}
local app, from, minutes, steps = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local found = {}
for step = 0, steps - 1 do
  local sums, all = {}, {}
  for minute = step * minutes, step * minutes + minutes - 1 do
    local counts = redis.call('HGETALL', K.stats .. string.format('%d', from + minute * 60000) .. ':' .. app)
    for n = 1, #counts, 2 do sums[counts[n]] = (sums[counts[n]] or 0) + counts[n + 1] end
  end
  for field, number in pairs(sums) do all[#all + 1], all[#all + 2] = field, number end
  if #all > 0 then found[#found + 1] = {step, all} end
end
return reply(found)
