-- A run's record, and the codec of its packed fields. src/runs/codec.ts is the other side of the codec.
--
--   call     the facts of the accept, which every step reads: `<app> <function> <accepted (ms)> <retention (ms)> <absent (ms) or ->
--            <flags>`, then ` <traceparent>` if the call has one. `<retention> <absent> <flags>` are the terms of the call.
--            Flags: p promised, s a stream at its readers' pace, h has a webhook, c claims an idempotency key,
--            w sends ready-made items as data; - no flag.
--   attempt  `<number> <token> <started (ms), or - after a requeue>`. The worker that took the run sends the token with every write (fence).
--   hold     an attempt of a delivery holds the delivery: `<token> <until (ms)> <lease (ms)>`
--@include redis: now

local ENDED = {succeeded = true, failed = true, cancelled = true, timed_out = true, expired = true}

-- Returns a call without traceparent.
local function pack_call(app, fn, accepted, terms) return app .. ' ' .. fn .. ' ' .. accepted .. ' ' .. terms end

-- Returns the ms without a reader after which a call with these terms is cancelled, or nil without such a time and for 0.
local function timer_of(terms) return string.match(terms, '^%d+ ([1-9]%d*) ') end

-- Returns a call that is no longer cancelled when its last reader disconnects, or nil if the call was not.
local function without_cancel(call)
  local before, after = string.match(call, '^(%S+ %S+ %d+ %d+) 0 (.+)$')
  return before and before .. ' - ' .. after
end

local function target_of(call) return string.match(call, '^(%S+) (%S+) ') end

local function retention_of(call) return tonumber(string.match(call, '^%S+ %S+ %d+ (%d+)')) end

local function traceparent_of(call) return string.match(call, '^%S+ %S+ %d+ %S+ %S+ %S+ (%S+)') end

-- Most runs of one script call have the same text, so each text is parsed once.
local calls_read = {}
local function read_call(call)
  local read = calls_read[call]
  if read == nil then
    local app, keep, absent, flags = string.match(call, '^(%S+) %S+ %d+ (%d+) (%S+) (%S+)')
    local function has(flag) return string.find(flags, flag, 1, true) ~= nil end
    read = {app = app, keep = tonumber(keep), absent = absent ~= '-' and absent or nil,
      promised = has('p'), paced = has('s'), hook = has('h'), claim = has('c')}
    calls_read[call] = read
  end
  return read
end

-- `started` is '-' after a requeue.
local function pack_attempt(number, token, started) return number .. ' ' .. token .. ' ' .. started end

local function read_attempt(attempt) return string.match(attempt, '^(%d+) (%S+) (%S+)$') end

-- Returns the number of an attempt as text, '0' before the first attempt.
local function number_of(attempt) return attempt and string.match(attempt, '^%d+') or '0' end

-- Returns whether the attempt has this token.
local function is_of(attempt, token) return attempt and string.find(attempt, ' ' .. token .. ' ', 1, true) ~= nil end

local function pack_hold(token, upto, lease) return token .. ' ' .. upto .. ' ' .. lease end

-- Returns the token of a delivery's attempt, and whether the attempt still holds the delivery. A hold that ends later than twice its lease
-- from now comes from a clock that has stepped back since. Such a hold does not count.
local function read_hold(hold)
  if not hold then return nil, false end
  local token, upto, lease = string.match(hold, '^(%S+) (%d+) (%d+)$')
  upto, lease = tonumber(upto), tonumber(lease)
  return token, upto > now and upto <= now + 2 * lease
end

-- Returns nil if there is no record.
local function load_run(id)
  local f = redis.call('HMGET', K.run .. id, 'state', 'call', 'attempt', 'followers', 'items', 'cancel', 'size')
  -- A record without a call was written by an earlier version, and no script can process it.
  if not f[1] or not f[2] then return nil end
  local call, number, token, started = read_call(f[2]), nil, nil, nil
  if f[3] then number, token, started = read_attempt(f[3]) end
  return {state = f[1], attempt = number and tonumber(number) or 0, token = token, started = started, followers = f[4],
    items = f[5] and tonumber(f[5]) or 0, cancel = f[6], size = f[7] and tonumber(f[7]) or 0, app = call.app, keep = call.keep,
    absent = call.absent, promised = call.promised, paced = call.paced, hook = call.hook, claim = call.claim}
end
