#!lua flags=allow-oom
-- Contract 4, "Isolation": wakes due probes of open circuits, and frees slots whose dispatcher died. No attempt's end triggers these steps.
-- Dispatchers may call this script at any time, also at once.
--
-- KEYS  1  the prefix of the receivers' keys
-- ARGV  1-5  see parts/host-slots
--       6  maximum number of lines
-- Returns {woken deliveries as {project, run, attempt, host:port, slot, watched (1/0)}, deliveries of expired slots as {project, run, attempt}}
--@include host-slots: woken, circuit_of, take_back, save_counts, wake_delivery, wake_deliveries, wake_project, FORGET
local most = ARGV[6]
local lapsed = {}
for _, line in ipairs(redis.call('ZRANGEBYSCORE', K.watch, '-inf', now, 'LIMIT', 0, most)) do
  local project, host = string.match(line, '^(%S+) (%S+)$')
  local c = circuit_of(line)
  for _, slot in ipairs(redis.call('ZRANGEBYSCORE', K.open .. line, '-inf', '(' .. now, 'LIMIT', 0, 100)) do
    take_back(project, line, host, slot)
    if c.probing == slot then
      redis.call('HDEL', K.circuit .. line, 'probing')
      c.probing = nil
    end
    local attempt, _, run = string.match(slot, '^(%d+) (%S+) (%S+)')
    lapsed[#lapsed + 1] = {project, run, tonumber(attempt)}
  end
  if c.open then
    if not c.probing and now >= c.probe then
      local slot = wake_delivery(line, project, host, true)
      if slot then
        redis.call('HSET', K.circuit .. line, 'probing', slot)
        redis.call('PEXPIRE', K.circuit .. line, FORGET)
        c.probing = slot
      end
    end
  elseif redis.call('EXISTS', K.parked .. line) == 1 then
    redis.call('ZADD', K.turns .. host, 'NX', now_us, project)
    wake_deliveries(host, line, 0)
  end
  wake_project(project)
  -- The next look is due when the first slot expires, or when the next probe is due and a delivery is parked.
  local first = redis.call('ZRANGE', K.open .. line, 0, 0, 'WITHSCORES')[2]
  local next_at = first and tonumber(first) + 1
  if c.open and not c.probing and c.probe > now and redis.call('EXISTS', K.parked .. line) == 1 then
    next_at = math.min(next_at or c.probe, c.probe)
  end
  if next_at then redis.call('ZADD', K.watch, next_at, line) else redis.call('ZREM', K.watch, line) end
end
save_counts()
return reply({woken, lapsed})
