#!lua flags=allow-oom
-- Makes deliveries due at once, whatever became of them before: one attempt for each that is granted, and the schedule from its start.
--
-- KEYS  1 the project's prefix
-- ARGV  1 time in which it must be handed over (ms)  2 names this request: asked again, its answers are the same  then per run: its id
-- Returns per run 0: no delivery, -1: an attempt is under way or was asked for and not yet made, or the number of the attempt that is due
--@include clock
--@include hold
local answers = {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local key = K.run .. id
  local f = redis.call('HMGET', key, 'delivery', 'tries', 'hold', 'wanted')
  local _, held = holder(f[3])
  local answer
  if not f[1] then
    answer = 0
  elseif f[4] == ARGV[2] then
    answer = tonumber(f[2] or 0) + 1
  elseif f[4] or held then
    answer = -1
  else
    answer = tonumber(f[2] or 0) + 1
    redis.call('HSET', key, 'delivery', 'pending', 'round', answer - 1, 'asked', now_text, 'wanted', ARGV[2])
    redis.call('HDEL', key, 'next', 'refusals')
    redis.call('ZADD', K.due, now + ARGV[1], id)
    redis.call('ZREM', K.promises, id)
  end
  answers[#answers + 1] = answer
end
return reply(answers)
