-- A run: its record, its followers, the messages about it, and its places in the indexes. src/runs/codec.ts is the other side of the packed fields and messages.
--
-- Packed fields of the record:
--   call       the facts of the accept, which every step reads: `<app> <function> <accepted (ms)> <retention (ms)> <absent (ms) or ->
--              <flags>`, then ` <traceparent>` if the call has one. `<retention> <absent> <flags>` are the terms of the call.
--              Flags: p promised, s a stream at its readers' pace, h has a webhook, c claims an idempotency key,
--              w sends ready-made items as data, r the parameters are a request to a web server; - no flag.
--   attempt    `<number> <token> <started (ms), or - after a requeue>`. The worker that took the run sends the token with every write (fence).
--   hold       an attempt of a delivery holds the delivery: `<token> <until (ms)> <lease (ms)>`
--   followers  `<gateway>:<mode>` for each follower. Modes: o the run's outcome, i also its items, l also its log, f all of it and its start.
--
-- The id of an open run is also in each follower's `following` set. Readers of an ended run are in its record too, and the run is in `reading`.

local ENDED = {succeeded = true, failed = true, cancelled = true, timed_out = true, expired = true}

-- Returns a call without traceparent.
local function pack_call(app, fn, accepted, terms) return app .. ' ' .. fn .. ' ' .. accepted .. ' ' .. terms end

-- Returns the ms without a reader after which a call with these terms is cancelled, or nil without such a time and for 0.
local function timer_of(terms) return string.match(terms, '^%d+ ([1-9]%d*) ') end

-- Returns a call that is no longer cancelled when its last reader disconnects, or nil if the call was not.
local function without_cancel(call)
  local before, after = string.match(call, '^(%S+ %S+ %d+ %d+) 0 (.+)$')
  return before and before .. ' - ' .. after
end

local function target_of(call) return string.match(call, '^(%S+) (%S+) ') end

local function retention_of(call) return tonumber(string.match(call, '^%S+ %S+ %d+ (%d+)')) end

local function traceparent_of(call) return string.match(call, '^%S+ %S+ %d+ %S+ %S+ %S+ (%S+)') end

-- Returns the name of the queue of an app's runs. Each deployed version has a queue: the active version at acceptance executes a run.
-- The name of a deployed version has 64 digits. The version of a folder's code is shorter, and has no queue.
local function queue_of(app, version) return version and #version == 64 and app .. '@' .. version or app end

-- Returns the app of a queue, and the version, if the queue is of a deployed version.
local function owner_of(queue) return string.match(queue, '^([^@]+)@?(.*)$') end

-- Most runs of one script call have the same text, so each text is parsed once.
local calls_read = {}
local function read_call(call)
  local read = calls_read[call]
  if read == nil then
    local app, accepted, keep, absent, flags = string.match(call, '^(%S+) %S+ (%d+) (%d+) (%S+) (%S+)')
    local function has(flag) return string.find(flags, flag, 1, true) ~= nil end
    read = {app = app, accepted = tonumber(accepted), keep = tonumber(keep), absent = absent ~= '-' and absent or nil,
      promised = has('p'), paced = has('s'), hook = has('h'), claim = has('c'), request = has('r')}
    calls_read[call] = read
  end
  return read
end

-- `started` is '-' after a requeue.
local function pack_attempt(number, token, started) return number .. ' ' .. token .. ' ' .. started end

local function read_attempt(attempt) return string.match(attempt, '^(%d+) (%S+) (%S+)$') end

-- Returns the number of an attempt as text, '0' before the first attempt.
local function number_of(attempt) return attempt and string.match(attempt, '^%d+') or '0' end

-- Returns whether the attempt has this token.
local function is_of(attempt, token) return attempt and string.find(attempt, ' ' .. token .. ' ', 1, true) ~= nil end

local function pack_hold(token, upto, lease) return token .. ' ' .. upto .. ' ' .. lease end

-- Returns the token of a delivery's attempt, and whether the attempt still holds the delivery. A hold that ends later than twice its lease
-- from now comes from a clock that has stepped back since. Such a hold does not count.
local function read_hold(hold)
  if not hold then return nil, false end
  local token, upto, lease = string.match(hold, '^(%S+) (%d+) (%d+)$')
  upto, lease = tonumber(upto), tonumber(lease)
  return token, upto > now and upto <= now + 2 * lease
end

-- Returns nil if there is no record.
local function load_run(id)
  local f = redis.call('HMGET', K.run .. id, 'state', 'call', 'attempt', 'followers', 'items', 'cancel', 'size')
  -- A record without a call was written by an earlier version, and no script can process it.
  if not f[1] or not f[2] then return nil end
  local call, number, token, started = read_call(f[2]), nil, nil, nil
  if f[3] then number, token, started = read_attempt(f[3]) end
  return {state = f[1], attempt = number and tonumber(number) or 0, token = token, started = started, followers = f[4],
    items = f[5] and tonumber(f[5]) or 0, cancel = f[6], size = f[7] and tonumber(f[7]) or 0, app = call.app, accepted = call.accepted,
    keep = call.keep, absent = call.absent, promised = call.promised, paced = call.paced, hook = call.hook, claim = call.claim,
    request = call.request}
end

-- Gathers messages to gateways. `send_messages` sends them once per gateway and script call. src/runs/codec.ts parses them.
local outbox = {}
local function post(gateway, message)
  local box = outbox[gateway]
  if box == nil then box = {}; outbox[gateway] = box end
  box[#box + 1] = message
end

-- Posts a message about head, items, log or start to the followers whose mode has it.
local FOLLOWED_BY = {head = 'oilf', items = 'if', log = 'lf', start = 'f'}
local function notify(followers, what, message)
  local modes = FOLLOWED_BY[what]
  for gateway, mode in string.gmatch(followers, '(%S+):(%a)') do
    if string.find(modes, mode, 1, true) then post(gateway, message) end
  end
end

local function send_messages()
  for gateway, box in pairs(outbox) do redis.call('SPUBLISH', K.toGateway .. gateway, table.concat(box)) end
end

-- Wakes the worker that has waited longest for this app. If no worker received the message, wakes the next worker. A wake only moves the
-- worker to the end of the list. The worker's take or the end of its lease removes it. So a lost wake costs a second (reap wakes again), and
-- no run is lost.
local function wake_worker(app)
  local waiting = K.waiting .. app
  for i = 1, redis.call('ZCARD', waiting) do
    local worker = redis.call('ZRANGE', waiting, 0, 0)[1]
    redis.call('ZADD', waiting, 'XX', now_us + i, worker)
    if redis.call('SPUBLISH', K.toWorker .. worker, string.format('wake %s %d', app, now_us)) > 0 then return end
  end
end

-- Adds a gateway to the followers, or widens its mode: items and log together make all.
local WIDER = {oi = 'i', ol = 'l', of = 'f', il = 'f', ['if'] = 'f', li = 'f', lf = 'f'}
local function add_follower(id, run, gateway, mode)
  local others, known = {}, nil
  for other, other_mode in string.gmatch(run.followers or '', '(%S+):(%a)') do
    if other == gateway then known = other_mode else others[#others + 1] = other .. ':' .. other_mode end
  end
  if known == mode then return end
  local wider = known and WIDER[known .. mode] or mode
  if known and WIDER[mode .. known] == known then return end
  others[#others + 1] = gateway .. ':' .. wider
  run.followers = table.concat(others, ' ')
  redis.call('HSET', K.run .. id, 'followers', run.followers)
  if ENDED[run.state] then return end
  if known == nil then redis.call('SADD', K.following .. gateway, id) end
  if run.absent and run.absent ~= '0' then redis.call('ZREM', K.absent, id) end
end

-- Sends one command for many members, because a separate call for each member costs more than the command. Lua bounds the number of
-- arguments, so the members are sent in portions.
local function send_members(command, key, members)
  for from = 1, #members, 1000 do redis.call(command, key, unpack(members, from, math.min(from + 999, #members))) end
end
