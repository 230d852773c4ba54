-- Contract 4, "Isolation": a receiver's open attempts, its parked deliveries and its circuit. A line is one project's part of a receiver
-- (`<project> <host:port>`). A slot is the lease of an open attempt (`<attempt> <project> <run> <unique>`).
-- ARGV  1  lease of a slot (ms)
--       2  open attempts per line
--       3  open attempts per receiver
--       4  time from the opening of a circuit to its first probe (ms)
--       5  open attempts per project to all receivers
--
-- A line that never succeeded may have one open attempt, so receivers that hang take few places (docs/decisions/0028).
-- A line that has succeeded may exceed its share, up to a number from the dispatcher. The receiver's last places stay free for the
-- shares of other projects.

local LEASE, PER_LINE, PER_HOST, PROBE = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local PER_PROJECT = tonumber(ARGV[5])
local IN_A_ROW, WINDOW, OF_WINDOW, LONGEST_PROBE, FORGET = 20, 100, 50, 60, 7200000
local SUCCEEDED_FOR = 30 * 24 * 3600 * 1000
local woken = {}

-- Counts a line's open slots. Expired slots do not count. Only `host-look` removes expired slots, because it hands their deliveries over
-- again.
local function open_in(line) return redis.call('ZCOUNT', K.open .. line, now, '+inf') end

-- Numbers of slots of a receiver or a project. A call reads and writes each number once (docs/decisions/0041). Slots are granted and taken
-- back only by `grant` and `take_back`, so the numbers are exact. An expired slot counts until `host-look` takes it back.
local counts, changes = {}, {}
local function count_of(key)
  if not counts[key] then counts[key] = tonumber(redis.call('GET', key) or 0) end
  return counts[key]
end
local function count(key, by)
  counts[key] = count_of(key) + by
  changes[key] = (changes[key] or 0) + by
end
-- Writes the numbers. Called once, at the end of a script. A number without a change for two leases has no open slot, so it expires: a number
-- that is wrong after a damaged file of Redis is right again after a pause.
local function save_counts()
  for key, by in pairs(changes) do
    if by ~= 0 then
      if counts[key] > 0 then redis.call('SET', key, counts[key], 'PX', 2 * LEASE) else redis.call('DEL', key) end
    end
  end
end

local function circuit_of(line)
  local f = redis.call('HMGET', K.circuit .. line, 'row', 'window', 'probe', 'every', 'probing', 'ramp')
  return {row = tonumber(f[1] or 0), window = f[2] or '', probe = tonumber(f[3] or 0), every = tonumber(f[4] or 0), probing = f[5],
    ramp = tonumber(f[6] or 0), open = f[3] and true or false}
end

-- Returns whether every outcome counts, because there was a recent failure.
local function watched(c) return c.open or c.ramp > 0 or c.window ~= '' end

-- Returns whether a line never succeeded. `known` is '1' if a dispatcher knows that the line has succeeded.
local function is_new(line, known) return known ~= '1' and redis.call('EXISTS', K.succeeded .. line) == 0 end

-- Returns whether a line may have another open attempt. `grown` is its limit without a recent failure.
local function has_room(line, host, c, grown, new)
  local mine, share = open_in(line), PER_LINE
  if new then share = 1 elseif c.ramp > 0 then share = math.min(c.ramp, PER_LINE) elseif not watched(c) then share = math.max(grown, PER_LINE) end
  return mine < share and count_of(K.hostSlots .. host) < (mine < PER_LINE and PER_HOST or PER_HOST - PER_LINE)
end

-- Returns whether a project may have another open attempt, to any receiver.
local function project_has_room(project) return count_of(K.projectSlots .. project) < PER_PROJECT end

local function grant(project, line, host, slot)
  if redis.call('ZADD', K.open .. line, now + LEASE, slot) == 1 then
    count(K.hostSlots .. host, 1)
    count(K.projectSlots .. project, 1)
  end
  redis.call('ZADD', K.watch, 'NX', now + LEASE, line)
end

-- Returns whether the slot existed.
local function take_back(project, line, host, slot)
  if redis.call('ZREM', K.open .. line, slot) == 0 then return false end
  count(K.hostSlots .. host, -1)
  count(K.projectSlots .. project, -1)
  return true
end

local function wait_in_project(project, host) redis.call('ZADD', K.waitingHosts .. project, 'NX', now_us, host) end

local function watch_from(line, at) redis.call('ZADD', K.watch, 'LT', at, line) end

-- Gives a slot to a parked delivery: the longest parked and the newest in turn, so that new deliveries do not wait for a backlog.
local function wake_delivery(line, project, host, watched)
  local parked = K.parked .. line
  local newest = redis.call('HINCRBY', K.turn, line, 1) % 2 == 0
  local member = redis.call(newest and 'ZPOPMAX' or 'ZPOPMIN', parked)[1]
  if not member then redis.call('HDEL', K.turn, line); return nil end
  redis.call('INCRBY', K.parkedCount, -1)
  if redis.call('EXISTS', parked) == 0 then redis.call('HDEL', K.turn, line) end
  local run, attempt = string.match(member, '^(%S+) (%d+)$')
  local slot = string.format('%s %s %s w%d', attempt, project, run, redis.call('INCR', K.slotNumber))
  grant(project, line, host, slot)
  woken[#woken + 1] = {project, run, tonumber(attempt), host, slot, watched and 1 or 0}
  return slot
end

-- Gives a receiver's free slots to its projects with parked deliveries, in turn: the project with the oldest turn comes first. `own` is the
-- line that freed a slot, and `grown` is the limit of its open attempts.
local function wake_deliveries(host, own, grown)
  local turns = K.turns .. host
  for _ = 1, 64 do
    if count_of(K.hostSlots .. host) >= PER_HOST then return end
    local project = redis.call('ZRANGE', turns, 0, 0)[1]
    if not project then return end
    local line = project .. ' ' .. host
    local c, new = circuit_of(line), is_new(line)
    -- A line whose share is used returns when one of its slots is freed. A line with an open circuit returns when the circuit closes.
    if c.open or not has_room(line, host, c, line == own and grown or 0, new) then
      redis.call('ZREM', turns, project)
    elseif not project_has_room(project) then
      redis.call('ZREM', turns, project)
      if redis.call('EXISTS', K.parked .. line) == 1 then wait_in_project(project, host) end
    elseif not wake_delivery(line, project, host, watched(c) or new) then
      redis.call('ZREM', turns, project)
    else
      redis.call('ZADD', turns, now_us, project)
    end
  end
end

-- Gives a project's free places to its waiting receivers, in turn: the receiver with the oldest turn comes first.
local function wake_project(project)
  local waiting = K.waitingHosts .. project
  for _ = 1, 64 do
    local host = redis.call('ZRANGE', waiting, 0, 0)[1]
    if not host or not project_has_room(project) then return end
    local line = project .. ' ' .. host
    local c, new = circuit_of(line), is_new(line)
    redis.call('ZREM', waiting, host)
    -- A line with an open circuit is woken by its probe.
    if not c.open and redis.call('EXISTS', K.parked .. line) == 1 then
      if has_room(line, host, c, 0, new) then
        wake_delivery(line, project, host, watched(c) or new)
        if redis.call('EXISTS', K.parked .. line) == 1 then wait_in_project(project, host) end
      else
        redis.call('ZADD', K.turns .. host, 'NX', now_us, project)
      end
    end
  end
end

-- Records that a receiver has a parked delivery or an open circuit. The list shows receivers to the project, so it may lose old entries.
local TROUBLED_MOST, TROUBLED_MS = 1000, 2 * 24 * 3600 * 1000
local function trouble(project, host)
  local key = K.troubled .. project
  if redis.call('ZADD', key, now, host) == 1 then
    redis.call('ZREMRANGEBYRANK', key, 0, -TROUBLED_MOST - 1)
    redis.call('PEXPIRE', key, TROUBLED_MS)
  end
end

-- Applies the circuit's table (docs/webhooks.md) for one ended attempt: good, bad, or none (without a meaning).
local function learn(line, host, outcome, slot)
  local key, c = K.circuit .. line, circuit_of(line)
  if c.open then
    if outcome == 'good' then
      redis.call('DEL', key)
      redis.call('HSET', key, 'ramp', 2)
      redis.call('ZREM', K.circuits, line)
    elseif c.probing == slot then
      local every = outcome == 'bad' and math.min(c.every * 2, PROBE * LONGEST_PROBE) or c.every
      redis.call('HSET', key, 'every', every, 'probe', now + every)
      redis.call('HDEL', key, 'probing')
      redis.call('ZADD', K.circuits, now + FORGET, line)
      watch_from(line, now + every)
    end
  elseif outcome == 'bad' then
    local window = string.sub(c.window .. '1', -WINDOW)
    local _, bad = string.gsub(window, '1', '')
    if c.row + 1 >= IN_A_ROW or (#window == WINDOW and bad >= OF_WINDOW) then
      redis.call('DEL', key)
      redis.call('HSET', key, 'every', PROBE, 'probe', now + PROBE)
      redis.call('ZADD', K.circuits, now + FORGET, line)
      trouble(string.match(line, '^%S+'), host)
      watch_from(line, now + PROBE)
    else
      redis.call('HSET', key, 'row', c.row + 1, 'window', window)
      if c.ramp > 0 then redis.call('HSET', key, 'ramp', math.max(1, math.floor(c.ramp / 2))) end
    end
  elseif outcome == 'good' and (c.ramp > 0 or c.window ~= '') then
    local window = c.window ~= '' and string.sub(c.window .. '0', -WINDOW) or ''
    local ramp = c.ramp > 0 and c.ramp + 1 or 0
    if ramp > PER_LINE then ramp = 0 end
    if ramp == 0 and not string.find(window, '1', 1, true) then
      redis.call('DEL', key)
    else
      redis.call('HSET', key, 'row', 0, 'window', window, 'ramp', ramp)
    end
  end
  redis.call('PEXPIRE', key, FORGET)
end
