-- Roll-outs of versions (contract 7, "Versions"). Each app has at most one roll-out: its target is prepared on the app's workers.
-- The app's hash `deployment:` has: active, before (the version that was active before, while it may have queued runs), and for a roll-out
-- target, mode (activate | build), number, until (ms), by (author of the activation), term (ms). A roll-out in steps has: duration (ms), abort
-- (percent of failed calls, or empty). From its first step on, it has: share (percent of new calls that the target gets), since (ms), calls
-- (number of calls since the first step). A version's hash has: state (building | ready | active | failed | retired), bundle, size, manifest,
-- author, created, deployed, reason. The hash `roll-out:` has the last report of each worker: ready, or waiting and why; and in
-- `counts:<worker>` its ended calls of the target, as `<calls> <failed>`.
--@include run: queue_of
--@include queues: move_runs

local function version_key(app, version) return K.version .. app .. ':' .. version end

local function end_roll_out(app)
  redis.call('HDEL', K.deployment .. app, 'target', 'mode', 'number', 'until', 'by', 'term',
    'duration', 'abort', 'share', 'since', 'calls')
  redis.call('DEL', K.rollOut .. app)
  redis.call('SREM', K.rolling, app)
end

-- Adds a line to the version's log. The gateway prints the time.
local MOST_LINES = 1000
local function write_lines(app, version, lines)
  local log = K.buildLog .. app .. ':' .. version
  for _, line in ipairs(lines) do redis.call('RPUSH', log, line) end
  local over = redis.call('LLEN', log) - MOST_LINES
  if over > 0 then
    redis.call('LTRIM', log, -MOST_LINES, -1)
    redis.call('HINCRBY', version_key(app, version), 'cut', over)
  end
end
local function note(app, version, text)
  write_lines(app, version, {'{"time":' .. now_text .. ',"text":' .. cjson.encode(text) .. '}'})
end

-- Runs that one script call moves. Reap moves further runs.
local MOST_MOVED = 1000

-- An undoing by the service. A gateway's round writes it to the audit log (versions/roll-outs.lua), because workers may not write there.
local MOST_UNDONE = 1000
local function record_undone(app, target, reason)
  redis.call('RPUSH', K.undone, table.concat({now_text, app, target, reason}, ' '))
  redis.call('LTRIM', K.undone, -MOST_UNDONE, -1)
end

-- Undoes a roll-out. A version that was ready before keeps its state. Queued runs of a stepped roll-out go back to the active version.
local function undo(app, target, reason)
  local key = version_key(app, target)
  if redis.call('HGET', key, 'state') == 'building' then redis.call('HSET', key, 'state', 'failed') end
  redis.call('HSET', key, 'reason', reason)
  local active, share = unpack(redis.call('HMGET', K.deployment .. app, 'active', 'share'))
  if active and share then
    note(app, target, 'undone: ' .. reason)
    local timeout = redis.call('HGET', K.queues, queue_of(app, target))
    if timeout then move_runs(app, target, active, timeout, MOST_MOVED) end
  end
  end_roll_out(app)
end

local function undo_by_service(app, target, reason)
  record_undone(app, target, reason)
  undo(app, target, reason)
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
    'until', string.format('%d', now + term), 'by', by, 'term', string.format('%d', term))
  redis.call('SADD', K.rolling, app)
  redis.call('SADD', K.deployed, app)
end

local MOST_ACTIVATIONS = 100
local function activate(app, version, old, by)
  if old and old ~= version then redis.call('HSET', version_key(app, old), 'state', 'retired') end
  redis.call('HSET', version_key(app, version), 'state', 'active')
  redis.call('HDEL', version_key(app, version), 'reason')
  redis.call('HSET', K.deployment .. app, 'active', version)
  if old and old ~= version and redis.call('EXISTS', K.queue .. queue_of(app, old)) == 1 then
    redis.call('HSET', K.deployment .. app, 'before', old)
  end
  -- Calls that came before the first version are in the app's own queue.
  local timeout = not old and redis.call('HGET', K.queues, app)
  if timeout then move_runs(app, '', version, timeout, MOST_MOVED) end
  redis.call('LPUSH', K.activations .. app, table.concat({version, now_text, by}, ' '))
  redis.call('LTRIM', K.activations .. app, 0, MOST_ACTIVATIONS - 1)
  end_roll_out(app)
end

-- A roll-out in steps. Each step lasts a fifth of the duration. After the last step, the version is active.
local STEPS = 5
-- From this number of calls on, the share of failed calls counts at once. With fewer calls, it counts before the next step.
local ENOUGH_CALLS = 10

local function begin_steps(app, target, duration, term)
  redis.call('HSET', K.deployment .. app, 'share', 100 / STEPS, 'since', now_text, 'calls', 0, 'until', string.format('%d', now + duration + term))
  local key = version_key(app, target)
  if redis.call('HGET', key, 'state') == 'building' then redis.call('HSET', key, 'state', 'ready') end
  note(app, target, string.format('%d %% of new calls use this version', 100 / STEPS))
end

-- Returns why the share of failed calls undoes the roll-out, or nil. `counts` has `<calls> <failed>` of each worker.
local function too_many_failed(counts, abort, is_due)
  local calls, failed = 0, 0
  for _, count in ipairs(counts) do
    local of, bad = string.match(count, '^(%d+) (%d+)$')
    calls, failed = calls + of, failed + bad
  end
  if calls == 0 or failed * 100 <= tonumber(abort) * calls or (calls < ENOUGH_CALLS and not is_due) then return nil end
  return string.format('%d of %d calls of the version failed, and abort_on_error_rate is %s %%.', failed, calls, abort)
end

-- Moves a stepped roll-out on. Returns 'undone', 'over' after the last step, or nil.
local function step(app, target, counts)
  local key = K.deployment .. app
  local share, since, duration, abort = unpack(redis.call('HMGET', key, 'share', 'since', 'duration', 'abort'))
  local place = math.max(0, now - since) * STEPS / duration
  local wanted = math.min(STEPS, 1 + math.floor(place)) * 100 / STEPS
  local is_over = place >= STEPS
  local why = abort and abort ~= '' and too_many_failed(counts, abort, is_over or wanted > tonumber(share))
  if why then undo_by_service(app, target, why); return 'undone' end
  if wanted > tonumber(share) then
    redis.call('HSET', key, 'share', wanted)
    note(app, target, string.format('%d %% of new calls use this version', wanted))
  end
  return is_over and 'over' or nil
end

-- Moves the app's roll-out on. The version becomes active when a live worker is ready and no live worker that serves the app is missing.
-- With a duration, the version then gets a rising share of the new calls first.
-- A new app's first worker may report before its first lease, so the calling worker counts as live. Returns 1 if the roll-out has ended.
local function settle(app, caller)
  local active, target, mode, until_ms, by, term, duration, share =
    unpack(redis.call('HMGET', K.deployment .. app, 'active', 'target', 'mode', 'until', 'by', 'term', 'duration', 'share'))
  if not target then end_roll_out(app); return 1 end
  local fields, reports, counts = redis.call('HGETALL', K.rollOut .. app), {}, {}
  local waiting
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if string.find(name, '^counts:') then counts[#counts + 1] = value
    else
      reports[name] = value
      waiting = string.match(value, '^waiting (.+)$') or waiting
    end
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
  local all_ready, stepped = ready and not missing, nil
  if share then
    stepped = step(app, target, counts)
    if stepped == 'undone' then return 1 end
  end
  if all_ready and (not share or stepped == 'over') then
    if not share and active and tonumber(duration or 0) > 0 then
      begin_steps(app, target, tonumber(duration), tonumber(term))
      return 0
    end
    activate(app, target, active, by)
    return 1
  end
  if now > tonumber(until_ms) then
    local who = missing and 'The worker ' .. missing .. ' was not ready in time' or 'No worker was ready in time'
    undo_by_service(app, target, who .. (waiting and ': ' .. waiting or '; see its log.'))
    return 1
  end
  return 0
end
