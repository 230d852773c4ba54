-- Contract 1, "Disconnects": decides the fate of a run that is cancelled or that its last reader has left.
local CANCELLED = '{"code":"cancelled","message":"The run was cancelled."}'

-- Ends a queued run. Flags a running run and notifies its worker. Returns the run's state before.
local function cancel_run(id, run, by, handover_ms)
  if not run.cancel then redis.call('HSET', K.run .. id, 'cancel', by) end
  if run.state == 'queued' then
    finish(id, run, failure(run, 'cancelled', CANCELLED), handover_ms)
    return 'queued'
  end
  redis.call('SPUBLISH', K.toWorker .. string.match(run.token, '^(.-):'), 'cancel ' .. id .. ' ' .. run.token)
  return 'running'
end

-- Removes a gateway from a run's followers. If an open run has no other follower, its `absent` time begins: empty continues the run, 0
-- cancels the run now. If an ended run has no other reader, the run may be forgotten.
local function drop_follower(id, gateway, handover_ms)
  local run = load_run(id)
  if run == nil or not run.followers then return end
  local rest = {}
  for other, mode in string.gmatch(run.followers, '(%S+):(%a)') do
    if other ~= gateway and not (mode == 'o' and ENDED[run.state]) then rest[#rest + 1] = other .. ':' .. mode end
  end
  if #rest > 0 then
    redis.call('HSET', K.run .. id, 'followers', table.concat(rest, ' '))
    return
  end
  redis.call('HDEL', K.run .. id, 'followers')
  run.followers = nil
  if ENDED[run.state] then
    redis.call('ZREM', K.reading, id)
    return
  end
  if not run.absent then return end
  if run.absent == '0' then
    cancel_run(id, run, 'left', handover_ms)
  else
    redis.call('ZADD', K.absent, now + run.absent, id)
  end
end
