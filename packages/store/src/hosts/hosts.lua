#!lua flags=allow-oom
-- Contract 4, "Isolation": dispatchers acquire and release slots of receivers. A released slot makes room for parked deliveries.
--
-- KEYS  1  the prefix of the receivers' keys
-- ARGV  1-5  see parts/host-slots
--       steps   per step: kind, project, host:port, run, attempt, slot, grown, known, flag
--       kind    acquire | release | release_unused
--       grown   limit of the line's open attempts, for a line with a success and without a recent failure
--       known   '1' if the dispatcher knows that the line has succeeded
--       flag    of acquire: n | p (was parked before) | f (a slot for any number of open attempts)
--               of release: good | bad | none (has no meaning for the receiver)
-- Returns {answers, woken deliveries as {project, run, attempt, host:port, slot, watched (1/0)}}, with one answer per step:
--       open     the answer of acquire
--       watched  open, and every outcome counts, because of a recent failure or because the line never succeeded
--       parked circuit_open | parked host_busy | parked project_busy
--       released the answer of release and release_unused
--       woke     released, and a parked delivery was woken
-- A repeated step counts an existing slot only once, and gives a slot back only once.
--@include host-slots: woken, circuit_of, watched, is_new, has_room, project_has_room, grant, take_back, save_counts, wait_in_project, watch_from, wake_deliveries, wake_project, learn, trouble, SUCCEEDED_FOR
local function acquire(project, host, run, attempt, slot, grown, known, how)
  local line = project .. ' ' .. host
  local member = run .. ' ' .. attempt
  if how == 'p' and redis.call('ZREM', K.parked .. line, member) == 1 then redis.call('INCRBY', K.parkedCount, -1) end
  local c, new = circuit_of(line), is_new(line, known)
  local why
  if how == 'f' then
    why = nil
  elseif c.open then
    if c.probing or now < c.probe then
      why = 'circuit_open'
    else
      redis.call('HSET', K.circuit .. line, 'probing', slot)
    end
  elseif not has_room(line, host, c, tonumber(grown), new) then
    why = 'host_busy'
  elseif not project_has_room(project) then
    why = 'project_busy'
  end
  if why and redis.call('ZSCORE', K.open .. line, slot) then return 'watched' end
  if not why then
    grant(project, line, host, slot)
    return (watched(c) or new) and 'watched' or 'open'
  end
  if redis.call('ZADD', K.parked .. line, 'NX', now_us, member) == 1 then
    redis.call('INCR', K.parkedCount)
    trouble(project, host)
  end
  -- A line with an open circuit is woken by its probe. A line whose share is used is woken by its own slots. A line of a full receiver is woken
  -- by any slot of the receiver. A line of a project whose share is used is woken by any slot of the project.
  if c.open then
    watch_from(line, math.max(c.probe, now))
  elseif why == 'project_busy' then
    wait_in_project(project, host)
  else
    redis.call('ZADD', K.turns .. host, 'NX', now_us, project)
  end
  return 'parked ' .. why
end

local function release(project, host, slot, grown, known, outcome)
  local line = project .. ' ' .. host
  if not take_back(project, line, host, slot) then return 'released' end
  if outcome == 'good' and known ~= '1' then redis.call('SET', K.succeeded .. line, '1', 'PX', SUCCEEDED_FOR) end
  if outcome == 'bad' or redis.call('EXISTS', K.circuit .. line) == 1 then learn(line, host, outcome, slot) end
  if redis.call('EXISTS', K.parked .. line, K.turns .. host, K.waitingHosts .. project) == 0 then return 'released' end
  if redis.call('EXISTS', K.parked .. line) == 1 then redis.call('ZADD', K.turns .. host, 'NX', now_us, project) end
  -- The project's other receivers come first, because a receiver with many parked deliveries would keep the place.
  wake_project(project)
  local before = #woken
  wake_deliveries(host, line, tonumber(grown))
  return #woken > before and 'woke' or 'released'
end

-- Gives an unused slot back, because its dispatcher stops. The next look of another dispatcher wakes parked deliveries.
local function release_unused(project, host, slot)
  local line = project .. ' ' .. host
  if not take_back(project, line, host, slot) then return 'released' end
  if circuit_of(line).probing == slot then redis.call('HDEL', K.circuit .. line, 'probing') end
  watch_from(line, now)
  return 'released'
end

local answers = {}
for i = 6, #ARGV, 9 do
  local kind, project, host, run, attempt, slot, grown, known, flag = unpack(ARGV, i, i + 8)
  if kind == 'acquire' then
    answers[#answers + 1] = acquire(project, host, run, attempt, slot, grown, known, flag)
  elseif kind == 'release_unused' then
    answers[#answers + 1] = release_unused(project, host, slot)
  else
    answers[#answers + 1] = release(project, host, slot, grown, known, flag)
  end
end
save_counts()
return reply({answers, woken})
