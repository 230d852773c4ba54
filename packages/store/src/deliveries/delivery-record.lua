#!lua flags=allow-oom
-- Contract 4: records the result of an attempt before any later step. The next state is delivered, failed, another attempt, or (parked)
-- the same attempt later, because the attempt was not made. `kept` stores a delivery's envelope before the first attempt is sent.
--
-- KEYS  1  the project's prefix
-- ARGV  1  time (ms) within which a due attempt must have begun
--       runs  per run: id, attempt, token of this attempt, record, next state, delay, note
--       record      JSON without its last brace; for kept, the envelope in its stored form
--       next state  delivered | failed | pending | parked | kept
--       delay       ms until the next attempt, for pending and parked
--       note        number of refusals so far; for parked, the reason
-- Returns per run one of these numbers:
--       1  recorded, now or by an earlier call
--       0  superseded
--       2  parked, but the delivery's slot came during the parking
--@include run: read_hold, retention_of, send_members
--@include memory: grown, beyond, as_table, attempt_bytes, LIST, check_share, count_bytes, keep, send_kept
local handover = ARGV[1]
local KEPT_ATTEMPTS = 100

-- Removes the start of the receiver's answer if the project's share is full. The rest is small, and the schedule needs it.
local function without_answer(text)
  local attempt = cjson.decode(text .. '}')
  attempt.answer = nil
  return string.sub(cjson.encode(attempt), 1, -2)
end

local answers, over_with = {}, {}
local function record(id, attempt, token, text, next_state, delay, note)
  local key = K.run .. id
  local f = redis.call('HMGET', key, 'hold', 'recorded', 'missed', 'parked', 'call', 'size', 'wanted')
  if f[2] == token then return 1 end
  if read_hold(f[1]) ~= token then return 0 end
  if next_state == 'kept' then
    -- The envelope stays as long as the run, because a redelivery sends the same bytes. If the envelope does not fit into the project's
    -- share, each attempt builds it again from the same record and the same items.
    if redis.call('HEXISTS', key, 'envelope') == 1 then return 1 end
    local size = beyond(#text) + as_table(#text)
    if check_share(size) ~= 'ok' then return 1 end
    redis.call('HSET', key, 'envelope', text, 'size', string.format('%d', tonumber(f[6] or 0) + size))
    grown = grown + size
    return 1
  end
  if next_state == 'parked' then
    redis.call('HDEL', key, 'hold', 'missed')
    redis.call('HSET', key, 'parked', (f[4] and string.match(f[4], '^%d+') or now_text) .. ' ' .. note)
    redis.call('ZADD', K.due, now + (f[3] and handover or delay), id)
    return f[3] and 2 or 1
  end
  local over = {'hold'}
  if f[3] then over[#over + 1] = 'missed' end
  if f[7] then over[#over + 1] = 'wanted' end
  if f[4] then
    local since, reason = string.match(f[4], '^(%d+) (.*)$')
    text = string.format('%s,"parked":{"since":%s,"reason":"%s"}', text, since, reason)
    over[#over + 1] = 'parked'
  end
  local fields = {'tries', attempt, 'delivery', next_state, 'recorded', token}
  local function put(name, value) fields[#fields + 1] = name; fields[#fields + 1] = value end
  if next_state == 'pending' then
    local at = string.format('%d', now + delay)
    text = text .. ',"nextAt":' .. at
    put('next', at)
    put('refusals', note)
    redis.call('ZADD', K.due, at + handover, id)
  else
    -- The sealed secret stays as long as the run, because a redelivery is signed with it.
    if tonumber(attempt) > 1 then over[#over + 1] = 'next'; over[#over + 1] = 'refusals' end
    over_with[#over_with + 1] = id
    keep(id, true, retention_of(f[5]))
  end
  redis.call('HDEL', key, unpack(over))
  if tonumber(attempt) <= KEPT_ATTEMPTS then
    if check_share(attempt_bytes(#text)) ~= 'ok' then text = without_answer(text) end
    local more = attempt_bytes(#text) + (tonumber(attempt) == 1 and LIST or 0)
    put('size', string.format('%d', tonumber(f[6] or 0) + more))
    grown = grown + more
  end
  redis.call('HSET', key, unpack(fields))
  redis.call('RPUSH', K.attempts .. id, text .. '}')
  if tonumber(attempt) > KEPT_ATTEMPTS then redis.call('LTRIM', K.attempts .. id, -KEPT_ATTEMPTS, -1) end
  return 1
end
for i = 2, #ARGV, 7 do answers[#answers + 1] = record(unpack(ARGV, i, i + 6)) end
if #over_with > 0 then send_members('ZREM', K.due, over_with) end
send_kept()
count_bytes()
return reply(answers)
