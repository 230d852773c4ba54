-- Roll-outs of versions (contract 7, "Versions"). Each app has at most one roll-out: its target is prepared on the app's workers.
-- The app's hash `deployment:` has: active, and for a roll-out target, mode (activate | build), number, until (ms), by (author of the
-- activation). A version's hash has: state (building | ready | active | failed | retired), bundle, size, manifest, author, created, deployed,
-- reason. The hash `roll-out:` has the last report of each worker: ready, or waiting and why.
--@include redis: now, now_us, now_text

local function version_key(app, version) return K.version .. app .. ':' .. version end

local function end_roll_out(app)
  redis.call('HDEL', K.deployment .. app, 'target', 'mode', 'number', 'until', 'by')
  redis.call('DEL', K.rollOut .. app)
  redis.call('SREM', K.rolling, app)
end

-- Undoes a roll-out. A version that was ready before keeps its state.
local function undo(app, target, reason)
  local key = version_key(app, target)
  if redis.call('HGET', key, 'state') == 'building' then redis.call('HSET', key, 'state', 'failed') end
  redis.call('HSET', key, 'reason', reason)
  end_roll_out(app)
end

-- Calls the app's roll-out off, if it has another target.
local function supersede(app, version)
  local target = redis.call('HGET', K.deployment .. app, 'target')
  if target and target ~= version then undo(app, target, 'Another deployment or activation replaced this one.') end
end

-- Begins a roll-out. Its number identifies it, because a version can have several roll-outs.
local function begin_roll_out(app, version, mode, by, term)
  supersede(app, version)
  end_roll_out(app)
  redis.call('HDEL', version_key(app, version), 'reason')
  redis.call('HSET', K.deployment .. app, 'target', version, 'mode', mode, 'number', string.format('%d', now_us),
    'until', string.format('%d', now + term), 'by', by)
  redis.call('SADD', K.rolling, app)
  redis.call('SADD', K.deployed, app)
end

local MOST_ACTIVATIONS = 100
local function activate(app, version, old, by)
  if old and old ~= version then redis.call('HSET', version_key(app, old), 'state', 'retired') end
  redis.call('HSET', version_key(app, version), 'state', 'active')
  redis.call('HDEL', version_key(app, version), 'reason')
  redis.call('HSET', K.deployment .. app, 'active', version)
  redis.call('LPUSH', K.activations .. app, table.concat({version, now_text, by}, ' '))
  redis.call('LTRIM', K.activations .. app, 0, MOST_ACTIVATIONS - 1)
  end_roll_out(app)
end

-- Moves the app's roll-out on. The version becomes active when a live worker is ready and no live worker that serves the app is missing.
-- A new app's first worker may report before its first lease, so the calling worker counts as live. Returns 1 if the roll-out has ended.
local function settle(app, caller)
  local active, target, mode, until_ms, by = unpack(redis.call('HMGET', K.deployment .. app, 'active', 'target', 'mode', 'until', 'by'))
  if not target then end_roll_out(app); return 1 end
  local fields, reports = redis.call('HGETALL', K.rollOut .. app), {}
  local waiting
  for i = 1, #fields, 2 do
    reports[fields[i]] = fields[i + 1]
    waiting = string.match(fields[i + 1], '^waiting (.+)$') or waiting
  end
  local ready = reports[caller] == 'ready'
  if mode == 'build' and ready then
    if redis.call('HGET', version_key(app, target), 'state') == 'building' then redis.call('HSET', version_key(app, target), 'state', 'ready') end
    end_roll_out(app)
    return 1
  end
  local missing
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', K.serving .. app, now, '+inf')) do
    if reports[worker] == 'ready' then ready = true else missing = worker; waiting = string.match(reports[worker] or '', '^waiting (.+)$') or waiting end
  end
  if ready and not missing then
    activate(app, target, active, by)
    return 1
  end
  if now > tonumber(until_ms) then
    local who = missing and 'The worker ' .. missing .. ' was not ready in time' or 'No worker was ready in time'
    undo(app, target, who .. (waiting and ': ' .. waiting or '; see its log.'))
    return 1
  end
  return 0
end
