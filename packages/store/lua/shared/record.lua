-- A run's record as the scripts see it; nil where there is none.
local ENDED = {succeeded = true, failed = true, cancelled = true, timed_out = true, expired = true}

-- What was agreed at the accept, read at every step and so in one field: `<retention ms> <absent ms or -> <flags>`, and where the call has
-- one, its ` <traceparent>`.
-- Flags: p promised, s a stream at its readers' pace, h has a webhook, c claims an idempotency key; - none of them.
local terms_read = {}
local function read_terms(terms)
  local read = terms_read[terms]
  if read == nil then
    local keep, absent, flags = string.match(terms, '^(%d+) (%S+) (%S+)')
    local function has(flag) return string.find(flags, flag, 1, true) ~= nil end
    read = {keep = tonumber(keep), absent = absent ~= '-' and absent or nil, promised = has('p'), paced = has('s'), hook = has('h'), claim = has('c')}
    terms_read[terms] = read
  end
  return read
end

local function load_run(id)
  local f = redis.call('HMGET', K.run .. id, 'state', 'app', 'terms', 'token', 'attempt', 'followers', 'items', 'cancel', 'size')
  -- Without terms it is of a version before this one: nobody can go on with it.
  if not f[1] or not f[3] then return nil end
  local terms = read_terms(f[3])
  return {state = f[1], app = f[2], token = f[4], attempt = tonumber(f[5] or 0), followers = f[6], items = tonumber(f[7] or 0), cancel = f[8],
    size = tonumber(f[9] or 0), keep = terms.keep, absent = terms.absent, promised = terms.promised, paced = terms.paced, hook = terms.hook,
    claim = terms.claim}
end
