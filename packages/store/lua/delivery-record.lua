#!lua flags=allow-oom
-- Records attempts before anything follows from them, and what is next: delivered, failed for good, another attempt, or (parked) the
-- same attempt later, for it was not made.
--
-- KEYS  1 the project's prefix
-- ARGV  1 time after an attempt is due in which it must have begun (ms)
--       then per run: id, attempt, token of this attempt, its record (JSON), next: delivered | failed | pending | parked,
--       when the next attempt is due (ms, for pending and parked), refusals so far
-- Returns per run 1 (also when this attempt was recorded before), or 0: superseded
--@include clock
local answers = {}
local function record(id, attempt, token, text, next_state, at, refusals)
  local key = K.run .. id
  local f = redis.call('HMGET', key, 'hold', 'keep', 'items', 'recorded', 'claim')
  if f[4] == token then return 1 end
  if f[1] ~= token then return 0 end
  redis.call('HDEL', key, 'hold', 'held')
  if next_state == 'parked' then
    redis.call('ZADD', K.due, at + ARGV[1], id)
    return 1
  end
  redis.call('RPUSH', K.attempts .. id, text)
  redis.call('HSET', key, 'tries', attempt, 'delivery', next_state, 'recorded', token)
  if next_state == 'pending' then
    redis.call('HSET', key, 'next', at, 'refusals', refusals)
    redis.call('ZADD', K.due, at + ARGV[1], id)
  else
    redis.call('HDEL', key, 'next', 'refusals', 'secret', 'envelope')
    redis.call('ZREM', K.due, id)
    redis.call('PEXPIRE', key, f[2])
    redis.call('PEXPIRE', K.attempts .. id, f[2])
    if f[5] then redis.call('PEXPIRE', K.idempotency .. f[5], f[2]) end
    if tonumber(f[3] or 0) > 0 then redis.call('PEXPIRE', K.items .. id, f[2]) end
  end
  return 1
end
for i = 2, #ARGV, 7 do answers[#answers + 1] = record(unpack(ARGV, i, i + 6)) end
return answers
