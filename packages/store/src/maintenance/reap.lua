#!lua flags=allow-oom
-- Ends what dead workers and gateways left, wakes workers again, and hands overdue deliveries over again.
-- Gateways may call this script at any time, also at once.
--
-- KEYS  1  the project's prefix
-- ARGV  1  longest pause between two reaps (ms). After a longer pause, or after a clock that stepped back, nothing ends, and every lease
--          gets a fresh term: Redis was away, and its clients were not.
--       2  fresh term (ms)
--       3  time (ms) for which an app may have no worker
--       4  handover time: ms within which a due webhook must be handed over
--       5  runs handled at most, per kind
--       6  age (ms) of a queued run after which its app is woken again
--       7  1 removes the last keys of an empty project
-- Returns {idle, ids, overdue deliveries, changes}
--       idle     1: nothing is open; 2: the project has no run, app, worker or gateway either; else 0
--       ids      runs that ended here and have a due webhook
--       overdue deliveries  {id, next attempt} each
--       changes  number of runs that ended, were cancelled, or lost a reader of a dead gateway
--@include run: ENDED, load_run, queue_of, owner_of, wake_worker, send_members
--@include queues: move_runs
--@include ending: finish, failure, cancel_run, drop_follower, due_runs, settle
local pause, term, grace, handover = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local most, stale, remove_empty = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local reaped = tonumber(redis.call('GET', K.reaped) or -1)
redis.call('SET', K.reaped, now)
local queues = redis.call('HGETALL', K.queues)

local function refresh(key)
  local members = {}
  for n, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do members[2 * n - 1], members[2 * n] = now + term, member end
  send_members('ZADD', key, members)
end
if reaped < 0 or now < reaped or now - reaped > pause then
  refresh(K.leases); refresh(K.workers); refresh(K.gateways)
  -- Readers could not reconnect while Redis was away.
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.absent, '-inf', now + term)) do redis.call('ZADD', K.absent, now + term, id) end
  local away = reaped < 0 and 0 or math.max(0, now - reaped) * 1000
  for i = 1, #queues, 2 do
    -- No worker could take a run while Redis was away, so that time does not count as waiting.
    local waited = redis.call('ZRANGE', K.queue .. queues[i], 0, -1, 'WITHSCORES')
    for n = 1, #waited, 2 do redis.call('ZADD', K.queue .. queues[i], math.min(waited[n + 1] + away, now_us), waited[n]) end
    local serving = K.serving .. queues[i]
    for _, worker in ipairs(redis.call('ZRANGE', serving, 0, -1)) do
      if redis.call('ZSCORE', K.workers, worker) then redis.call('ZADD', serving, now + term, worker) end
    end
  end
  return reply({0, {}, {}, 0})
end

local ended = 0
local function close(id, state, code, message)
  local run = load_run(id)
  if run and not ENDED[run.state] then
    finish(id, run, failure(run, state, code, message), handover)
    ended = ended + 1
    return true
  end
  return false
end
local function overdue(key, upto) return redis.call('ZRANGEBYSCORE', key, '-inf', upto, 'LIMIT', 0, most) end

for _, id in ipairs(overdue(K.leases, now)) do
  if not close(id, 'failed', 'worker_lost', 'The worker that ran this run vanished.') then redis.call('ZREM', K.leases, id) end
end

for _, worker in ipairs(overdue(K.workers, now)) do
  redis.call('ZREM', K.workers, worker)
  for _, field in ipairs(redis.call('HKEYS', K.took .. worker)) do
    local app = string.match(field, '^waits (.+)$')
    if app then redis.call('ZREM', K.waiting .. app, worker) end
  end
  redis.call('DEL', K.took .. worker)
  for _, app in ipairs(redis.call('HKEYS', K.apps)) do redis.call('HDEL', K.replicas .. app, worker) end
end

local dropped = 0
for _, gateway in ipairs(overdue(K.gateways, now)) do
  -- A gateway may have read tens of thousands of runs. The gateway stays overdue until later calls have reached all of them.
  local ids = redis.call('SPOP', K.following .. gateway, most - dropped)
  for _, id in ipairs(ids) do drop_follower(id, gateway, handover) end
  dropped = dropped + #ids
  if dropped == most then break end
  redis.call('ZREM', K.gateways, gateway)
  redis.call('HDEL', K.numbers, gateway)
end

for _, id in ipairs(overdue(K.absent, now)) do
  redis.call('ZREM', K.absent, id)
  local run = load_run(id)
  if run and not ENDED[run.state] and not run.followers then
    cancel_run(id, run, 'left', handover)
    ended = ended + 1
  end
end

local function served_until(name) return tonumber(redis.call('ZREVRANGE', K.serving .. name, 0, 0, 'WITHSCORES')[2] or 0) end
local function description_of(app)
  local text = redis.call('HGET', K.apps, app)
  return text and cjson.decode(text)
end

-- Contract 7, "Versions": returns the version whose queue must hold the runs of this queue, or nil if they stay.
-- An empty version is the app's own queue, for an app that has no active version or whose code comes from a folder.
local function better_version(app, version)
  local active = redis.call('HGET', K.deployment .. app, 'active')
  if version == '' then
    local known = active and description_of(app)
    return known and known.deployed and active or nil
  elseif served_until(queue_of(app, version)) > now then
    return nil
  elseif version ~= active then
    return active or ''
  end
  local known = description_of(app)
  return known and not known.deployed and '' or nil
end

-- Ends the queued runs of an app that no worker serves.
local function end_unserved(app, queue)
  local known, since = description_of(app), served_until(app)
  if known and known.state == 'broken' then
    local message = type(known.error) == 'table' and known.error.message or 'The app failed to start.'
    for _, id in ipairs(redis.call('ZRANGE', queue, 0, most - 1)) do
      close(id, 'failed', 'app_failed_to_start', message)
    end
  elseif redis.call('EXISTS', K.removed .. app) == 1 and (not known or known.deployed) then
    for _, id in ipairs(redis.call('ZRANGE', queue, 0, most - 1)) do close(id, 'failed', 'not_found', 'The app was deleted.') end
  elseif now - since > grace then
    for _, id in ipairs(overdue(queue, string.format('%d', now_us - grace * 1000))) do close(id, 'failed', 'unavailable', 'No worker serves this app.') end
  end
end

local queued = 0
for i = 1, #queues, 2 do
  local name, timeout = queues[i], tonumber(queues[i + 1])
  local queue, app, version = K.queue .. name, owner_of(name)
  for _, id in ipairs(overdue(queue, string.format('%d', now_us - timeout * 1000))) do
    if not close(id, 'expired', 'expired', 'The run waited in the queue for too long.') then redis.call('ZREM', queue, id) end
  end
  local oldest = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  if #oldest > 0 then
    local better = better_version(app, version)
    if better then
      move_runs(app, version, better, timeout, most)
      queued = queued + 1
    elseif served_until(app) > now then
      if now - tonumber(oldest[2]) / 1000 > stale then wake_worker(name) end
    else
      end_unserved(app, queue)
    end
    queued = queued + redis.call('ZCARD', queue)
  elseif version ~= '' then
    local active, before = unpack(redis.call('HMGET', K.deployment .. app, 'active', 'before'))
    if version == before then redis.call('HDEL', K.deployment .. app, 'before') end
    if version ~= active then redis.call('HDEL', K.queues, name) end
  elseif redis.call('HEXISTS', K.apps, app) == 0 and redis.call('EXISTS', K.leases) == 0 then
    -- The app's entry stays until no run is leased, because a run that is requeued reads its queue timeout from this entry.
    redis.call('HDEL', K.queues, app)
  end
end

local handed = {}
for _, id in ipairs(overdue(K.due, now)) do
  local f = redis.call('HMGET', K.run .. id, 'state', 'tries')
  if f[1] then
    redis.call('ZADD', K.due, now + handover, id)
    handed[#handed + 1] = {id, tonumber(f[2] or 0) + 1}
  else
    redis.call('ZREM', K.due, id)
  end
end
settle()
redis.call('ZREMRANGEBYSCORE', K.reading, '-inf', now)
local idle = queued == 0 and redis.call('EXISTS', K.leases, K.due, K.absent) == 0
if idle and redis.call('EXISTS', K.runs, K.apps, K.queues, K.workers, K.gateways, K.tombstones) == 0 then
  if remove_empty then redis.call('DEL', K.bytes, K.share, K.wanted, K.reaped, K.numbers) end
  return reply({2, due_runs, handed, ended + dropped})
end
return reply({idle and 1 or 0, due_runs, handed, ended + dropped})
