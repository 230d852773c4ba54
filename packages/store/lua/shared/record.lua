-- A run's record as the scripts see it; nil where there is none.
local ENDED = {succeeded = true, failed = true, cancelled = true, timed_out = true, expired = true}
local function load_run(id)
  local f = redis.call('HMGET', K.run .. id, 'state', 'app', 'token', 'items', 'followers', 'hook', 'keep', 'claim',
    'absent', 'cancel', 'attempt', 'taken', 'started')
  if not f[1] then return nil end
  return {state = f[1], app = f[2], token = f[3], items = tonumber(f[4] or 0), followers = f[5], hook = f[6],
    keep = f[7], claim = f[8], absent = f[9], cancel = f[10], attempt = tonumber(f[11] or 0), taken = tonumber(f[12] or 0),
    started = f[13]}
end
