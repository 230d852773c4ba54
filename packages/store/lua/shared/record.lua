-- Reads a run's record for the scripts. Returns nil if there is no record.
local ENDED = {succeeded = true, failed = true, cancelled = true, timed_out = true, expired = true}

-- The facts of the accept. They share one field, because every step reads them:
-- `<app> <function> <accepted (ms)> <retention (ms)> <absent (ms) or -> <flags>`, then ` <traceparent>` if the call has one.
-- Flags: p promised, s a stream at its readers' pace, h has a webhook, c claims an idempotency key; - no flag.
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

local function load_run(id)
  local f = redis.call('HMGET', K.run .. id, 'state', 'call', 'attempt', 'followers', 'items', 'cancel', 'size')
  -- A record without a call was written by an earlier version, and no script can process it.
  if not f[1] or not f[2] then return nil end
  local call, number, token, started = read_call(f[2]), nil, nil, nil
  if f[3] then number, token, started = string.match(f[3], '^(%d+) (%S+) (%S+)$') end
  return {state = f[1], attempt = number and tonumber(number) or 0, token = token, started = started, followers = f[4],
    items = f[5] and tonumber(f[5]) or 0, cancel = f[6], size = f[7] and tonumber(f[7]) or 0, app = call.app, keep = call.keep,
    absent = call.absent, promised = call.promised, paced = call.paced, hook = call.hook, claim = call.claim}
end
