-- Ends a run: outcome to the record, out of queue and leases, followers told, webhook due, retention begun.
-- outcome = {state, items, streamed ('1' or '0'), ms, status, result, error}; empty strings for what there is not.
local LIVE_BYTES = 262144
local due_runs = {}
local function finish(id, run, outcome, handover_ms)
  local key = K.run .. id
  if run.state == 'queued' then redis.call('ZREM', K.queue .. run.app, id) else redis.call('ZREM', K.leases, id) end
  if run.absent and run.absent ~= '0' then redis.call('ZREM', K.absent, id) end
  redis.call('HDEL', key, 'params', 'followers', 'taken')
  local fields = {'state', outcome.state, 'items', outcome.items, 'ended', now_text, 'ms', outcome.ms}
  local function keep(name, value) if value ~= '' then fields[#fields + 1] = name; fields[#fields + 1] = value end end
  keep('streamed', outcome.streamed == '1' and '1' or '')
  keep('status', outcome.status)
  keep('result', outcome.result)
  keep('error', outcome.error)
  if run.hook then keep('delivery', 'pending') end
  redis.call('HSET', key, unpack(fields))
  if run.claim then
    local claim = K.idempotency .. run.claim
    if run.attempt == 0 then
      -- A run that never started (one that went back to the queue did) frees its key, if the key still names it.
      local holder = redis.call('GET', claim)
      if holder and string.sub(holder, 1, #id) == id then redis.call('DEL', claim) end
      redis.call('HDEL', key, 'claim')
    elseif not run.hook then
      redis.call('PEXPIRE', claim, run.keep)
    end
  end
  if run.hook then
    redis.call('ZADD', K.due, now + handover_ms, id)
    due_runs[#due_runs + 1] = id
  else
    redis.call('PEXPIRE', key, run.keep)
    if run.items > 0 then redis.call('PEXPIRE', K.items .. id, run.keep) end
  end
  if run.followers then
    for gateway in string.gmatch(run.followers, '(%S+):%a') do redis.call('SREM', K.following .. gateway, id) end
    local size = #outcome.result + #outcome.error
    if size > LIVE_BYTES then
      tell(run.followers, false, 'x ' .. id .. '\n')
    else
      tell(run.followers, false, string.format('e %s %s %s %d %s %s %d %s %d %d\n', id, run.token or '-', outcome.state, outcome.items,
        outcome.streamed, outcome.ms, now, outcome.status == '' and '0' or outcome.status, #outcome.result, #outcome.error)
        .. outcome.result .. outcome.error)
    end
  end
end

-- Outcomes that the store itself decides. A run that was never in a function took no time.
local function failure(run, state, error)
  return {state = state, items = run.items, streamed = '0', ms = '0', status = '', result = '', error = error}
end
