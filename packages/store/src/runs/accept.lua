#!lua
-- Contract 1: accepts runs. It checks idempotency keys and limits, writes the records, queues the runs, and wakes one waiting worker per app.
--
-- KEYS  1  the project's prefix
-- ARGV  1  latest time (ms, store's clock) at which the call may execute. A call that Redis held back for longer is refused: its caller has gone.
--       2  gateway
--       3  the gateway's lease (ms). Empty if the gateway renewed its lease a moment ago.
--       4  bytes that the project's runs may take. Empty if there is room.
--       5  number of kinds of calls
--       kinds  per kind: app, function, terms (parts/run), queue limit, queue timeout (ms),
--              what the gateway follows (o, i, l, f: parts/run; - is nothing), 1 for an app of deployed versions (else 0)
--       runs   per run: kind (from 1), id, parameters, number of further values, further values as names and values
--       hook         further value: webhook URL
--       secret       further value: sealed webhook secret
--       claim        further value: hash of the idempotency key
--       fingerprint  further value: hash of the request, beside `claim`
--       trace        further value: traceparent
-- Returns {now, one answer per run}, or {now} if the call is late. An answer has one of these forms:
--       accepted    also when asked again
--       joined <run id>
--       conflict
--       overloaded  the queue is full
--       full        the store is full of runs that must be kept
--       cancelled   the run was cancelled before its accept arrived
-- A run of a deployed app goes into the queue of the version that is active now, and its record names this version.
-- Redis refuses this script if memory is short, because an accepted run must be kept.
--@include run: pack_call, timer_of, queue_of, wake_worker, send_members
--@include memory: grown, beyond, as_table, FLAT, HOOK, CLAIM, RESERVED, count_bytes, evict
local execute_by, gateway, lease, limit, kind_count = unpack(ARGV, 1, 5)
if now > tonumber(execute_by) then return reply({now}) end
local bounded, answers, followed, queued, listed = limit ~= '', {}, {}, {}, {}
if lease ~= '' then redis.call('ZADD', K.gateways, now + lease, gateway) end
local tombstones = redis.call('EXISTS', K.tombstones) == 1
-- The gateway's figure is the limit. The runs under way count beside it, with their exact reserve.
local used_bytes = 0
if bounded then
  local under_way = redis.call('ZCARD', K.runs) - redis.call('ZCARD', K.kept) - redis.call('ZCARD', K.promises)
  limit = tonumber(limit)
  used_bytes = tonumber(redis.call('GET', K.bytes) or 0) + RESERVED * math.max(0, under_way)
end
-- The gateways' sweep normally makes room. If the sweep is too slow, each new run removes a few runs.
local EVICTED_EACH = 64

local kinds, runs_at = {}, 6 + 7 * kind_count
for i = 6, runs_at - 1, 7 do
  local app, fn, terms, queue_limit, queue_timeout, mode, deployed = unpack(ARGV, i, i + 6)
  kinds[#kinds + 1] = {app = app, call = pack_call(app, fn, now_text, terms), queue_limit = tonumber(queue_limit),
    queue_timeout = queue_timeout, deployed = deployed == '1', followers = mode ~= '-' and gateway .. ':' .. mode or nil,
    -- A run that is accepted without a reader starts its `onDisconnect` timer immediately.
    absent = mode == '-' and timer_of(terms) or nil}
end
-- One EXISTS covers all runs. If no run exists, the checks per run are not needed.
local keys, runs, at = {}, {}, runs_at
while at <= #ARGV do
  local _, id, _, value_count = unpack(ARGV, at, at + 3)
  runs[#runs + 1] = at
  keys[#keys + 1] = K.run .. id
  at = at + 4 + value_count
end
local known = redis.call('EXISTS', unpack(keys)) > 0
-- A record's first fields. Values at the even places from 4 on and later fields differ per run.
local fields = {'state', 'queued', 'call', '', 'body', ''}
local NOTHING = {}

local function queue_named(name, version) return {name = name, version = version, members = {}} end

-- Returns the queue of an app's new runs, with its version. During a roll-out in steps, `target` is the queue of the new version.
-- The limit counts the queues of both, and of the version before while it has runs.
local function open_queue(kind)
  local app = kind.app
  local queue
  if kind.deployed then
    local active, before, share, target, calls = unpack(redis.call('HMGET', K.deployment .. app, 'active', 'before', 'share', 'target', 'calls'))
    queue = queue_named(queue_of(app, active), active or nil)
    queue.length = 0
    -- After a rollback, the version before may be active again.
    if before and before ~= active and not (share and before == target) then
      queue.length = redis.call('ZCARD', K.queue .. queue_of(app, before))
    end
    if share then
      queue.target, queue.share, queue.calls, queue.counted = queue_named(queue_of(app, target), target), tonumber(share), tonumber(calls), 0
      queue.length = queue.length + redis.call('ZCARD', K.queue .. queue.target.name)
    end
  else
    queue = queue_named(app)
    queue.length = 0
  end
  queue.timeout, queue.app = kind.queue_timeout, app
  queue.length = queue.length + redis.call('ZCARD', K.queue .. queue.name)
  return queue
end

-- Returns the queue of the next call of a stepped roll-out. The calls alternate evenly, so that any few calls have nearly the share.
local function next_queue(queue)
  if not queue.target then return queue end
  local calls, share = queue.calls + queue.counted, queue.share
  queue.counted = queue.counted + 1
  return math.floor((calls + 1) * share / 100) > math.floor(calls * share / 100) and queue.target or queue
end

local function accept(kind, key, id, params, more)
  if known and redis.call('EXISTS', key) == 1 then return 'accepted' end
  if tombstones and redis.call('ZSCORE', K.tombstones, id) then return 'cancelled' end
  local app, claim = kind.app, more.claim
  if claim then
    local claimed_by = redis.call('GET', K.idempotency .. claim)
    if claimed_by then
      local earlier, request = string.match(claimed_by, '^(%S+) (.*)$')
      if redis.call('EXISTS', K.run .. earlier) == 1 then
        return request == more.fingerprint and 'joined ' .. earlier or 'conflict'
      end
    end
  end
  local queue = queued[app]
  if queue == nil then
    queue = open_queue(kind)
    queued[app] = queue
  end
  if queue.length >= kind.queue_limit then return 'overloaded' end
  local size = beyond(#params) + as_table(#params)
  if more.hook then size = size + HOOK + #more.hook + #(more.secret or '') end
  if claim then size = size + CLAIM end
  if bounded then
    local missing = used_bytes + grown + FLAT + size + RESERVED - limit
    if missing > 0 and evict(missing, EVICTED_EACH) < missing then return 'full' end
    used_bytes = used_bytes + RESERVED
  end
  grown = grown + FLAT + size
  fields[4], fields[6] = more.trace and kind.call .. ' ' .. more.trace or kind.call, params
  local n = 6
  if size > 0 then fields[n + 1], fields[n + 2] = 'size', size; n = n + 2 end
  if more.hook then fields[n + 1], fields[n + 2] = 'hook', more.hook; n = n + 2 end
  if more.secret then fields[n + 1], fields[n + 2] = 'secret', more.secret; n = n + 2 end
  if claim then
    fields[n + 1], fields[n + 2] = 'claim', claim
    n = n + 2
    redis.call('SET', K.idempotency .. claim, id .. ' ' .. more.fingerprint)
  end
  local chosen = next_queue(queue)
  if chosen.version then fields[n + 1], fields[n + 2] = 'v', chosen.version; n = n + 2 end
  if kind.followers then
    fields[n + 1], fields[n + 2] = 'followers', kind.followers
    n = n + 2
    followed[#followed + 1] = id
  elseif kind.absent then
    redis.call('ZADD', K.absent, now + kind.absent, id)
  end
  redis.call('HSET', key, unpack(fields, 1, n))
  queue.length = queue.length + 1
  -- Runs of one call keep the order of the call.
  local members, count, all = chosen.members, #chosen.members, #listed
  local place = string.format('%d', now_us + all / 2)
  members[count + 1], members[count + 2] = place, id
  listed[all + 1], listed[all + 2] = place, id
  return 'accepted'
end

for n, i in ipairs(runs) do
  local kind, id, params, value_count = unpack(ARGV, i, i + 3)
  local more = NOTHING
  if value_count ~= '0' then
    more = {}
    for at = i + 4, i + 3 + value_count, 2 do
      local name, value = unpack(ARGV, at, at + 1)
      more[name] = value
    end
  end
  answers[n] = accept(kinds[tonumber(kind)], keys[n], id, params, more)
end
count_bytes()
if #listed > 0 then send_members('ZADD', K.runs, listed) end
if #followed > 0 then send_members('SADD', K.following .. gateway, followed) end
local function add_runs(queue, timeout)
  if #queue.members == 0 then return end
  send_members('ZADD', K.queue .. queue.name, queue.members)
  redis.call('HSET', K.queues, queue.name, timeout)
  wake_worker(queue.name)
end
for _, queue in pairs(queued) do
  add_runs(queue, queue.timeout)
  if queue.target then
    add_runs(queue.target, queue.timeout)
    if queue.counted > 0 then redis.call('HINCRBY', K.deployment .. queue.app, 'calls', queue.counted) end
  end
end
return reply({now, answers})
