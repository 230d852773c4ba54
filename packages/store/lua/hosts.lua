#!lua flags=allow-oom
-- webhooks.md "Isolation": attempts enter a receiver and leave it, over all dispatchers. What leaves makes room for what is parked.
--
-- KEYS  1 the prefix of the receivers' keys
-- ARGV  1-4 see shared/host-slots, then per step: enter | leave, project, host:port, run, attempt, the slot, how many attempts the line may
--       have open where it has proved itself, and
--       for enter  n | p: was parked before | f: is let in whatever is open
--       for leave  good | bad | none (says nothing of the receiver)
-- Returns {one answer per step, woken deliveries as {project, run, attempt, host:port, slot, watched (1/0)}}
--       enter: open | watched (open, and every outcome counts: there was a failure of late) | parked circuit_open | parked host_busy
--       leave: left | woke (its slot went to a parked delivery)
-- Asked again: a slot that is there is not counted twice, one that was left is not left again.
--@include clock
--@include host-slots
local function enter(project, host, run, attempt, slot, grown, how)
  local line = project .. ' ' .. host
  local member = run .. ' ' .. attempt
  if how == 'p' and redis.call('ZREM', K.parked .. line, member) == 1 then redis.call('INCRBY', K.parkedCount, -1) end
  local c = circuit_of(line)
  local why
  if how == 'f' then
    why = nil
  elseif c.open then
    if c.probing or now < c.probe then
      why = 'circuit_open'
    else
      redis.call('HSET', K.circuit .. line, 'probing', slot)
    end
  elseif not has_room(line, host, c, tonumber(grown)) then
    why = 'host_busy'
  end
  if why and redis.call('ZSCORE', K.open .. line, slot) then return 'watched' end
  if not why then
    grant(line, host, slot)
    return watched(c) and 'watched' or 'open'
  end
  if redis.call('ZADD', K.parked .. line, 'NX', now_us, member) == 1 then redis.call('INCR', K.parkedCount) end
  -- An open circuit's line is woken by its probe, a full one's by its own slots, one that waits for the whole receiver by anybody's.
  if c.open then watch_from(line, math.max(c.probe, now)) else redis.call('ZADD', K.turns .. host, 'NX', now_us, project) end
  return 'parked ' .. why
end

local function leave(project, host, slot, grown, outcome)
  local line = project .. ' ' .. host
  redis.call('ZREM', K.openAll .. host, slot)
  if redis.call('ZREM', K.open .. line, slot) == 0 then return 'left' end
  if outcome == 'bad' or redis.call('EXISTS', K.circuit .. line) == 1 then learn(line, host, outcome, slot) end
  if redis.call('EXISTS', K.parked .. line, K.turns .. host) > 0 then
    if redis.call('EXISTS', K.parked .. line) == 1 then redis.call('ZADD', K.turns .. host, 'NX', now_us, project) end
    local before = #woken
    wake(host, line, tonumber(grown))
    if #woken > before then return 'woke' end
  end
  return 'left'
end

local answers = {}
for i = 5, #ARGV, 8 do
  if ARGV[i] == 'enter' then
    answers[#answers + 1] = enter(unpack(ARGV, i + 1, i + 7))
  else
    answers[#answers + 1] = leave(ARGV[i + 1], ARGV[i + 2], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7])
  end
end
return reply({answers, woken})
