#!lua
-- Accepts runs: idempotency claim, limits, record, place in the app's queue; wakes one waiting worker per app.
--
-- KEYS  1 the project's prefix
-- ARGV  1 the store's time (ms) by which this must execute; a call that Redis held back longer is refused, for its caller has gone
--       2 gateway  3 the gateway's lease (ms; empty: renewed a moment ago)  4 bytes that the project's runs may take (empty: there is room)
--       then per run: id, app, function, parameters, terms (see record), webhook URL, sealed secret,
--       claim (hash of the idempotency key, or empty), fingerprint, queue limit, queue timeout (ms),
--       what the gateway follows (o, i, l, f: see outbox; - nothing)
-- Returns {now, one answer per run}, or {now} when late:
--       accepted (also when asked again) | joined <run id> | conflict | overloaded (the queue is full) | full (the store is, of what must
--       be kept) | cancelled (before it came)
-- Not allowed when memory is short: nothing is accepted that cannot be kept.
--@include clock
--@include bytes
--@include many
--@include wake
--@include claim
--@include forget
if now > tonumber(ARGV[1]) then return reply({now}) end
local gateway, room, answers, followed, queued, listed = ARGV[2], tonumber(ARGV[4]), {}, {}, {}, {}
if ARGV[3] ~= '' then redis.call('ZADD', K.gateways, now + ARGV[3], gateway) end
local tombstones = redis.call('EXISTS', K.tombstones) == 1
local used = room and tonumber(redis.call('GET', K.bytes) or 0)
-- Room is made by hand only where the gateways' sweeping was too slow: a few runs for each that comes.
local EVICTED = 64

-- Whether any of them is there already: one question for all, and none for each where the answer is no.
local keys, asked = {}, 0
for i = 5, #ARGV, 12 do asked = asked + 1; keys[asked] = K.run .. ARGV[i] end
local known = redis.call('EXISTS', unpack(keys)) > 0
-- A record's first fields; the even places from 4 on, and what follows, are each run's own.
local fields = {'state', 'queued', 'call', '', 'params', ''}

local function accept(id, app, fn, params, terms, hook, secret, claim, fingerprint, limit, timeout, live)
  local key = K.run .. id
  if known and redis.call('EXISTS', key) == 1 then return 'accepted' end
  if tombstones and redis.call('ZSCORE', K.tombstones, id) then return 'cancelled' end
  if claim ~= '' then
    local holder = redis.call('GET', K.idempotency .. claim)
    if holder then
      local held, request = string.match(holder, '^(%S+) (.*)$')
      if redis.call('EXISTS', K.run .. held) == 1 then
        return request == fingerprint and 'joined ' .. held or 'conflict'
      end
    end
  end
  local queue = queued[app]
  if queue == nil then
    queue = {timeout = timeout, length = redis.call('ZCARD', K.queue .. app), limit = limit, most = tonumber(limit), members = {}}
    queued[app] = queue
  elseif limit ~= queue.limit then
    queue.limit, queue.most = limit, tonumber(limit)
  end
  if queue.length >= queue.most then return 'overloaded' end
  local size = beyond(#params) + as_table(#params)
  if hook ~= '' then size = size + 300 + #hook + #secret end
  if claim ~= '' then size = size + 200 end
  if room then
    local missing = used + grown + FLAT + size - room
    if missing > 0 and evict(missing, EVICTED) < missing then return 'full' end
  end
  grown = grown + FLAT + size
  fields[4], fields[6] = app .. ' ' .. fn .. ' ' .. now_text .. ' ' .. terms, params
  local n = 6
  if size > 0 then fields[n + 1], fields[n + 2] = 'size', size; n = n + 2 end
  if hook ~= '' then fields[n + 1], fields[n + 2] = 'hook', hook; n = n + 2 end
  if secret ~= '' then fields[n + 1], fields[n + 2] = 'secret', secret; n = n + 2 end
  if claim ~= '' then
    fields[n + 1], fields[n + 2] = 'claim', claim
    n = n + 2
    redis.call('SET', K.idempotency .. claim, id .. ' ' .. fingerprint)
  end
  if live ~= '-' then
    fields[n + 1], fields[n + 2] = 'followers', gateway .. ':' .. live
    n = n + 2
    followed[#followed + 1] = id
  else
    -- Nobody reads it yet: its time without a reader runs.
    local absent = string.match(terms, '^%d+ ([1-9]%d*) ')
    if absent then redis.call('ZADD', K.absent, now + absent, id) end
  end
  redis.call('HSET', key, unpack(fields, 1, n))
  queue.length = queue.length + 1
  -- Runs of one call are in the order of the call.
  local members, count, all = queue.members, #queue.members, #listed
  local place = string.format('%d', now_us + all / 2)
  members[count + 1], members[count + 2] = place, id
  listed[all + 1], listed[all + 2] = place, id
  return 'accepted'
end

for i = 5, #ARGV, 12 do answers[#answers + 1] = accept(unpack(ARGV, i, i + 11)) end
count_bytes()
if #listed > 0 then many('ZADD', K.runs, listed) end
if #followed > 0 then many('SADD', K.following .. gateway, followed) end
for app, queue in pairs(queued) do
  if #queue.members > 0 then
    many('ZADD', K.queue .. app, queue.members)
    redis.call('HSET', K.queues, app, queue.timeout)
    wake(app)
  end
end
return reply({now, answers})
