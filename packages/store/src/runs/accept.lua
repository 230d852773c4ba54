#!lua
-- Contract 1: accepts runs. It checks idempotency keys and limits, writes the records, queues the runs, and wakes one waiting worker per app.
--
-- KEYS  1  the project's prefix
-- ARGV  1  latest time (ms, store's clock) at which the call may execute. A call that Redis held back for longer is refused: its caller has gone.
--       2  gateway
--       3  the gateway's lease (ms). Empty if the gateway renewed its lease a moment ago.
--       4  bytes that the project's runs may take. Empty if there is room.
--       5  number of kinds of calls
--       kinds  per kind: app, function, terms (parts/record), queue limit, queue timeout (ms),
--              what the gateway follows (o, i, l, f: parts/messages; - is nothing)
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
-- Redis refuses this script if memory is short, because an accepted run must be kept.
--@include redis: now, now_us, now_text, send_members
--@include record: pack_call, timer_of
--@include memory: grown, beyond, as_table, FLAT, HOOK, CLAIM, RESERVED, count_bytes, evict
--@include messages: wake_worker
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

local kinds, runs_at = {}, 6 + 6 * kind_count
for i = 6, runs_at - 1, 6 do
  local app, fn, terms, queue_limit, queue_timeout, mode = unpack(ARGV, i, i + 5)
  kinds[#kinds + 1] = {app = app, call = pack_call(app, fn, now_text, terms), queue_limit = tonumber(queue_limit),
    queue_timeout = queue_timeout, followers = mode ~= '-' and gateway .. ':' .. mode or nil,
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
    queue = {timeout = kind.queue_timeout, length = redis.call('ZCARD', K.queue .. app), members = {}}
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
  local members, count, all = queue.members, #queue.members, #listed
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
for app, queue in pairs(queued) do
  if #queue.members > 0 then
    send_members('ZADD', K.queue .. app, queue.members)
    redis.call('HSET', K.queues, app, queue.timeout)
    wake_worker(app)
  end
end
return reply({now, answers})
