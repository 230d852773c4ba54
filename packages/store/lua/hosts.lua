#!lua flags=allow-oom
-- webhooks.md "Isolation": attempts enter a receiver and leave it, over all dispatchers. What leaves makes room for what is parked.
--
-- KEYS  1 the prefix of the receivers' keys
-- ARGV  1-5 see shared/host-slots, then per step: enter | leave | drop, project, host:port, run, attempt, the slot, how many attempts the line may
--       have open where it has proved itself, '1' where the dispatcher knows that the line has succeeded, and
--       for enter  n | p: was parked before | f: is let in whatever is open
--       for leave  good | bad | none (says nothing of the receiver)
-- Returns {one answer per step, woken deliveries as {project, run, attempt, host:port, slot, watched (1/0)}}
--       enter: open | watched (open, and every outcome counts: there was a failure of late, or the line never
--       succeeded) | parked circuit_open | parked host_busy | parked project_busy
--       leave: left | woke (its slot went to a parked delivery)
-- Asked again: a slot that is there is not counted twice, one that was left is not left again.
--@include clock
--@include host-slots
local function enter(project, host, run, attempt, slot, grown, known, how)
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
  if redis.call('ZADD', K.parked .. line, 'NX', now_us, member) == 1 then redis.call('INCR', K.parkedCount) end
  -- An open circuit's line is woken by its probe, a full one's by its own slots, one that waits for the whole receiver by anybody's, and one
  -- that waits for its project by any of the project's.
  if c.open then
    watch_from(line, math.max(c.probe, now))
  elseif why == 'project_busy' then
    wait_in_project(project, host)
  else
    redis.call('ZADD', K.turns .. host, 'NX', now_us, project)
  end
  return 'parked ' .. why
end

local function leave(project, host, slot, grown, known, outcome)
  local line = project .. ' ' .. host
  if not take_back(project, line, host, slot) then return 'left' end
  if outcome == 'good' and known ~= '1' then redis.call('SET', K.succeeded .. line, '1', 'PX', SUCCEEDED_FOR) end
  if outcome == 'bad' or redis.call('EXISTS', K.circuit .. line) == 1 then learn(line, host, outcome, slot) end
  if redis.call('EXISTS', K.parked .. line, K.turns .. host, K.waitingHosts .. project) == 0 then return 'left' end
  if redis.call('EXISTS', K.parked .. line) == 1 then redis.call('ZADD', K.turns .. host, 'NX', now_us, project) end
  -- The project's other receivers first: a receiver with many parked would keep the place.
  wake_project(project)
  local before = #woken
  wake(host, line, tonumber(grown))
  return #woken > before and 'woke' or 'left'
end

-- Gives a slot back that was not used, by a dispatcher that stops. The next look of another dispatcher wakes what is parked.
local function drop(project, host, slot)
  local line = project .. ' ' .. host
  if not take_back(project, line, host, slot) then return 'left' end
  if circuit_of(line).probing == slot then redis.call('HDEL', K.circuit .. line, 'probing') end
  watch_from(line, now)
  return 'left'
end

local answers = {}
for i = 6, #ARGV, 9 do
  if ARGV[i] == 'enter' then
    answers[#answers + 1] = enter(unpack(ARGV, i + 1, i + 8))
  elseif ARGV[i] == 'drop' then
    answers[#answers + 1] = drop(ARGV[i + 1], ARGV[i + 2], ARGV[i + 5])
  else
    answers[#answers + 1] = leave(ARGV[i + 1], ARGV[i + 2], unpack(ARGV, i + 5, i + 8))
  end
end
return reply({answers, woken})
