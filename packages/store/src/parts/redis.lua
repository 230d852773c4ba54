-- Redis' clock, and commands with many members.

-- The store's clock: `now` in ms, `now_us` in µs. Scripts never use a caller's time.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
-- Redis prints a Lua number by floating point, which costs more than the rest of a field. So written times are text.
local now_text = string.format('%d', now)

-- Sends one command for many members, because a separate call for each member costs more than the command. Lua bounds the number of
-- arguments, so the members are sent in portions.
local function send_members(command, key, members)
  for from = 1, #members, 1000 do redis.call(command, key, unpack(members, from, math.min(from + 999, #members))) end
end
