#!lua flags=allow-oom
-- Contract 5, "Deliveries": makes deliveries due at once, in any state. Each granted request gets one attempt, and the schedule starts again.
--
-- KEYS  1  the project's prefix
-- ARGV  1  handover time: ms within which the delivery must be handed over
--       2  id of this request. A repeated request gets the same answers.
--       runs  run ids
-- Returns per run one of these numbers:
--       0   no delivery
--       -1  an attempt is under way, or an earlier request's attempt is not made yet
--       n   number of the attempt that is due
--@include run: read_hold
local handover, request = ARGV[1], ARGV[2]
local answers = {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local key = K.run .. id
  local f = redis.call('HMGET', key, 'delivery', 'tries', 'hold', 'wanted')
  local _, held = read_hold(f[3])
  local answer
  if not f[1] then
    answer = 0
  elseif f[4] == request then
    answer = tonumber(f[2] or 0) + 1
  elseif f[4] or held then
    answer = -1
  else
    answer = tonumber(f[2] or 0) + 1
    redis.call('HSET', key, 'delivery', 'pending', 'round', answer - 1, 'asked', now_text, 'wanted', request)
    redis.call('HDEL', key, 'next', 'refusals')
    redis.call('ZADD', K.due, now + handover, id)
    redis.call('ZREM', K.promises, id)
  end
  answers[#answers + 1] = answer
end
return reply(answers)
