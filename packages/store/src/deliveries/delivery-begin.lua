#!lua flags=allow-oom
-- Contract 4: begins attempts of deliveries. A delivery has one attempt at a time, under a lease.
-- If the run returned a value, its envelope is stored at the first attempt. Every other envelope is built by the dispatcher from this
-- reply, and delivery-record stores it before it is sent.
--
-- KEYS  1  the project's prefix
-- ARGV  1  lease (ms)
--       2-7  the envelope's text before, between and after run id, state, result, run time and end
--       runs  per run: id, attempt that the job stands for, token of this attempt
-- Returns per run one of these answers:
--       1. {gone}, {settled} or {busy}
--       2. {early, ms until the attempt is due}
--       3. {begun, figures, time when it was parked (ms) and reason or empty, url, sealed secret or empty, stored envelope or empty,
--       result of the run or empty}
--       4. {begun, …, `<state> <items> <streamed (1/0)> <run time> <status or 0>`, error, head} if no envelope is stored yet
--       figures  `<refusals> <ended (ms)> <attempts before this round of the schedule> <age of the round (ms)> <takes of the run>
--                <app> <the caller's traceparent or ->`
-- A repeated call begins an attempt again under its token.
--@include run: pack_hold, read_hold, number_of, target_of, traceparent_of, send_members
local lease, before_id, before_state, before_result, before_ms, before_end, after_end = unpack(ARGV, 1, 7)
local answers, due = {}, {}

-- Formats a time for an envelope (RFC 3339, UTC, milliseconds). Most deliveries of one call share a second, so its text is built once.
local iso_second, iso_text
local function iso_time(ms)
  local second = math.floor(ms / 1000)
  if second ~= iso_second then
    -- The civil date of a day (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"). Years begin in March, and eras have 400 years.
    local day, time = math.floor(second / 86400) + 719468, second % 86400
    local era = math.floor(day / 146097)
    local of_era = day - era * 146097
    local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
    local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
    local month = math.floor((5 * of_year + 2) / 153)
    local of_month = of_year - math.floor((153 * month + 2) / 5) + 1
    month = month < 10 and month + 3 or month - 9
    iso_second = second
    iso_text = string.format('%04d-%02d-%02dT%02d:%02d:%02d.', year + era * 400 + (month <= 2 and 1 or 0), month, of_month,
      math.floor(time / 3600), math.floor(time / 60) % 60, time % 60)
  end
  return iso_text .. string.format('%03dZ', ms % 1000)
end

-- The same format as src/deliveries/kept-envelope.ts. The envelope is stored without the result, which the record holds already.
local function kept_envelope(id, state, ms, ended)
  local head = before_id .. id .. before_state .. state .. before_result
  return string.format('%d:', #head) .. head .. before_ms .. ms .. before_end .. iso_time(tonumber(ended)) .. after_end
end

for i = 8, #ARGV, 3 do
  local id, attempt, token = unpack(ARGV, i, i + 2)
  local key = K.run .. id
  local delivery, tries, hold, hook, secret, ended, envelope, refusals, next, round, asked, parked, call, run_attempt, body, state, items,
    streamed, ms, status, err, head = unpack(redis.call('HMGET', key, 'delivery', 'tries', 'hold', 'hook', 'secret', 'ended', 'envelope',
    'refusals', 'next', 'round', 'asked', 'parked', 'call', 'attempt', 'body', 'state', 'items', 'streamed', 'ms', 'status', 'error',
    'head'), 1, 22)
  local holding, held = read_hold(hold)
  local answer
  if not delivery or not call then
    answer = {'gone'}
  elseif delivery ~= 'pending' or tonumber(attempt) <= tonumber(tries or 0) then
    answer = {'settled'}
  elseif held and holding ~= token then
    -- The dispatcher that is parking this delivery must learn that the delivery was woken.
    redis.call('HSET', key, 'missed', 1)
    answer = {'busy'}
  elseif tonumber(next or 0) > now then
    -- Another machine's clock timed the job. The store's clock decides.
    answer = {'early', next - now}
  else
    local upto = string.format('%d', now + lease)
    local own_hold = pack_hold(token, upto, lease)
    if not envelope and state == 'succeeded' and body ~= '' and streamed ~= '1' and not head then
      envelope = kept_envelope(id, state, ms, ended)
      redis.call('HSET', key, 'hold', own_hold, 'envelope', envelope)
    else
      redis.call('HSET', key, 'hold', own_hold)
    end
    due[#due + 1], due[#due + 2] = upto, id
    local figures = string.format('%s %s %s %d %s %s %s', refusals or '0', ended, round or '0', now - tonumber(asked or ended),
      number_of(run_attempt), (target_of(call)), traceparent_of(call) or '-')
    local kept = envelope or ''
    -- A result that this attempt does not send is not read.
    local result = string.sub(kept, 1, 1) == '-' and '' or body or ''
    answer = {'begun', figures, parked or '', hook, secret or '', kept, result}
    if not envelope then
      answer[8] = string.format('%s %s %s %s %s', state, items or '0', streamed or '0', ms, status or '0')
      answer[9], answer[10] = err or '', head or ''
    end
  end
  answers[#answers + 1] = answer
end
if #due > 0 then send_members('ZADD', K.due, due) end
return reply(answers)
