-- Messages to gateways and workers, and the followers of a run.
-- A record has `<gateway>:<mode>` for each follower. The id of an open run is also in each gateway's `following` set. Readers of an ended run
-- are in its record too, and the run is in `reading`.
-- A follower's mode: o the run's outcome, i also its items, l also its log, f all of it and its start.
--@include redis: now_us
--@include record: ENDED

-- Gathers messages to gateways. `send_messages` sends them once per gateway and script call. src/runs/codec.ts parses them.
local outbox = {}
local function post(gateway, message)
  local box = outbox[gateway]
  if box == nil then box = {}; outbox[gateway] = box end
  box[#box + 1] = message
end

-- Posts a message about items, log or start to the followers whose mode has it.
local FOLLOWED_BY = {items = 'if', log = 'lf', start = 'f'}
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
