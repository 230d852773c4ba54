-- The store's clock: `now` in ms, `now_us` in µs. Scripts never take the time from a caller.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
-- As text where it is written: Redis prints a Lua number by floating point, which costs more than the rest of a field.
local now_text = string.format('%d', now)
