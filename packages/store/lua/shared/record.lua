-- A run's record as the scripts see it; nil where there is none.
local ENDED = {succeeded = true, failed = true, cancelled = true, timed_out = true, expired = true}

-- What was agreed at the accept, read at every step and so in one field: `<retention ms> <absent ms or -> <flags>`, and where the call has
-- one, its ` <traceparent>`.
-- Flags: p promised, s a stream at its readers' pace, h has a webhook, c claims an idempotency key; - none of them.
local function read_terms(run, terms)
  local keep, absent, flags, trace = string.match(terms, '^(%d+) (%S+) (%S+) ?(%S*)$')
  run.keep, run.absent = tonumber(keep), absent ~= '-' and absent or nil
  if flags ~= '-' then
    run.promised = string.find(flags, 'p', 1, true) ~= nil
    run.paced = string.find(flags, 's', 1, true) ~= nil
    run.hook = string.find(flags, 'h', 1, true) ~= nil
    run.claim = string.find(flags, 'c', 1, true) ~= nil
  end
  if trace ~= '' then run.trace = trace end
  return run
end

local function load_run(id)
  local f = redis.call('HMGET', K.run .. id, 'state', 'app', 'terms', 'token', 'attempt', 'followers', 'items', 'cancel', 'size')
  -- Without terms it is of a version before this one: nobody can go on with it.
  if not f[1] or not f[3] then return nil end
  return read_terms({state = f[1], app = f[2], token = f[4], attempt = tonumber(f[5] or 0), followers = f[6], items = tonumber(f[7] or 0),
    cancel = f[8], size = tonumber(f[9] or 0)}, f[3])
end
