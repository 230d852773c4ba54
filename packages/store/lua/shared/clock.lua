-- The store's clock: `now` in ms, `now_us` in µs. Scripts never use a caller's time.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
-- Redis prints a Lua number by floating point, which costs more than the rest of a field. So written times are text.
local now_text = string.format('%d', now)
