-- Ends runs, and decides the fate of a run that is cancelled or that its last reader has left.
-- outcome = {state, items, streamed ('1' or '0'), ms, status, result, code, error, head}. `code` is the code of the error. An absent value is
-- an empty string.
--@include run: ENDED, load_run, queue_of, post, send_messages, send_members
--@include memory: grown, beyond, kept_bytes, as_table, count_bytes, LARGE, keep, send_kept, free_claim

local LIVE_BYTES = 65536
-- Time for which readers of an ended run count as present without a renewal. `attend` renews it.
local READING_MS = 20000
local due_runs, due, delivered, released, left, reading = {}, {}, {}, {}, {}, {}

-- Contract 5, "Statistics": counts ended runs by app and minute, for a day (docs/decisions/0063).
-- A minute of an app is a hash. A field is the number of a range of latencies, after `e` for errors; the value is the number of runs.
-- Range 0 is below 1 ms. Range n is from 2^((n-1)/4) to 2^(n/4) ms. src/stats/latencies.ts is the other side.
local MINUTE_MS, COUNTED_MS, LAST_RANGE = 60000, 25 * 3600000, 112
local ERRORS = {failed = 'e', timed_out = 'e', expired = 'e'}
-- A logarithm of a power of two may be too small by the error of a double.
local RANGES, ROUNDING = 4 / math.log(2), 1e-9
local function range_of(ms)
  if ms < 1 then return '0' end
  return string.format('%d', math.min(LAST_RANGE, 1 + math.floor(math.log(ms) * RANGES + ROUNDING)))
end

-- By app: number of ended runs by field. `send_counts` sends one command for each app and field.
local counted = {}
local function count_end(run, state)
  local of_app = counted[run.app]
  if of_app == nil then of_app = {}; counted[run.app] = of_app end
  local field = range_of(now - run.accepted)
  if ERRORS[state] then field = 'e' .. field end
  of_app[field] = (of_app[field] or 0) + 1
end

local function send_counts()
  if next(counted) == nil then return end
  local minute = string.format('%d', now - now % MINUTE_MS)
  for app, fields in pairs(counted) do
    local key = K.stats .. minute .. ':' .. app
    for field, number in pairs(fields) do
      -- A new field: few are new in a minute. The first field of a minute creates the hash.
      if redis.call('HINCRBY', key, field, number) == number then
        redis.call('PEXPIRE', key, COUNTED_MS)
        redis.call('ZADD', K.countedApps, now_text, app)
        redis.call('ZREMRANGEBYSCORE', K.countedApps, '-inf', string.format('%d', now - COUNTED_MS))
        redis.call('PEXPIRE', K.countedApps, COUNTED_MS)
      end
    end
  end
end

-- A run that never reached its function frees its idempotency key; every other run keeps the key. A worker reports 0 ms if the function
-- was not reached. The store cannot know this about a worker that vanished. A requeued run counts as reached.
-- A function never sees a refused call.
local NEVER_STARTED = {app_failed_to_start = true, unavailable = true, cancelled = true}
local REFUSED = {invalid_input = true, not_found = true}
local function never_started(run, outcome)
  if run.attempt ~= 1 or run.state == 'queued' then return run.attempt == 0 end
  return REFUSED[outcome.code] or outcome.ms == '0' and NEVER_STARTED[outcome.code]
end

-- A record's last fields. Values at the even places and later fields differ per run.
local fields = {'state', '', 'ended', now_text, 'ms', '', 'body', ''}
-- Lengths as text. Formatting a number takes longer than the rest of a message, and the lengths of one call are often equal.
local lengths = setmetatable({}, {__index = function(known, length)
  known[length] = string.format('%d', length)
  return known[length]
end})

-- Contract 5, "Parameters of a run": the result takes the place of the parameters, and parameters up to this length move to the field `in`.
local MOST_PARAMETERS = 65536
-- A request to a web server may have credentials, so its record keeps no parameters.
local function read_parameters(id, run)
  if run.parameters then return end
  local key = K.run .. id
  local length = run.size > 0 and (run.request or run.size > MOST_PARAMETERS) and redis.call('HSTRLEN', key, 'body') or 0
  local dropped = run.request or length > MOST_PARAMETERS
  run.parameters = not dropped and redis.call('HGET', key, 'body') or ''
  run.parameters_length = dropped and length or #run.parameters
end

-- Returns the size of the run's record with the outcome, beyond the flat rate.
local function size_with(id, run, outcome)
  read_parameters(id, run)
  local key, result, err, head = K.run .. id, outcome.result, outcome.error, outcome.head
  local size, length = run.size + beyond(#result) + beyond(#err), run.parameters_length
  size = size + (run.parameters == '' and -beyond(length) or kept_bytes(length))
  size = size + as_table(#result + #err) - math.min(as_table(#result + #err), as_table(length))
  -- Gives back the reservation of a large result (workers/reserve.lua). The field stays, because nothing reads it after the end.
  if run.size >= LARGE then size = size - (redis.call('HGET', key, 'reserved') or 0) end
  if head ~= '' and redis.call('HEXISTS', key, 'head') == 0 then size = size + beyond(#head) end
  return size
end

-- Ends a run: writes the outcome, removes the run from queue and leases, notifies followers, marks the webhook as due, begins the retention.
-- `settle` sends the gathered commands.
-- @param size size of the record with the outcome, if the caller knows it already
local function finish(id, run, outcome, handover_ms, size)
  local key = K.run .. id
  count_end(run, outcome.state)
  if run.state == 'queued' then redis.call('ZREM', K.queue .. queue_of(run.app, redis.call('HGET', key, 'v')), id)
  else released[#released + 1] = id end
  if run.absent and run.absent ~= '0' then redis.call('ZREM', K.absent, id) end
  local result, err, head = outcome.result, outcome.error, outcome.head
  if size == nil then size = size_with(id, run, outcome) end
  -- Followers of the items or the log stay in the record until they have left. Followers of the outcome stay in the record too:
  -- removing them would cost another command, and nothing reads them after the end.
  local large = #result + #err + #head > LIVE_BYTES
  -- Followers read a large outcome from the store, so the run must stay until they have read it.
  if large and run.followers then run.followers = string.gsub(run.followers, ':o', ':i') end
  local read = run.followers and (large or run.items > 0 or string.find(run.followers, ':[lf]'))
  if run.followers and not read and string.find(run.followers, ':i') then redis.call('HDEL', key, 'followers') end
  if run.paced then redis.call('HDEL', key, 'taken') end
  fields[2], fields[6], fields[8] = outcome.state, outcome.ms, result
  local n = 8
  if outcome.streamed == '1' then fields[n + 1], fields[n + 2] = 'streamed', '1'; n = n + 2 end
  if outcome.status ~= '' then fields[n + 1], fields[n + 2] = 'status', outcome.status; n = n + 2 end
  if err ~= '' then fields[n + 1], fields[n + 2] = 'error', err; n = n + 2 end
  if head ~= '' then fields[n + 1], fields[n + 2] = 'head', head; n = n + 2 end
  if run.parameters ~= '' then fields[n + 1], fields[n + 2] = 'in', run.parameters; n = n + 2 end
  if outcome.refused then fields[n + 1], fields[n + 2] = 'refused', '1'; n = n + 2 end
  if size ~= run.size then fields[n + 1], fields[n + 2] = 'size', size; n = n + 2; grown = grown + size - run.size end
  if run.hook then fields[n + 1], fields[n + 2] = 'delivery', 'pending'; n = n + 2 end
  if large and run.followers then fields[n + 1], fields[n + 2] = 'followers', run.followers; n = n + 2 end
  redis.call('HSET', key, unpack(fields, 1, n))
  if run.claim and never_started(run, outcome) then
    free_claim(id, redis.call('HGET', key, 'claim'))
    redis.call('HDEL', key, 'claim')
  end
  if run.hook then
    due[#due + 1] = string.format('%d', now + handover_ms)
    due[#due + 1] = id
    delivered[#delivered + 1] = now_text
    delivered[#delivered + 1] = id
    due_runs[#due_runs + 1] = id
  else
    keep(id, run.promised, run.keep)
  end
  if run.followers then
    local message
    if large then
      message = 'x ' .. id .. '\n'
    else
      message = 'e ' .. id .. ' ' .. (run.token or '-') .. ' ' .. outcome.state .. ' ' .. lengths[outcome.items] .. ' ' .. outcome.streamed
        .. ' ' .. outcome.ms .. ' ' .. now_text .. ' ' .. (outcome.status == '' and '0' or outcome.status)
        .. ' ' .. lengths[#result] .. ' ' .. lengths[#err] .. ' ' .. lengths[#head] .. '\n' .. result .. err .. head
    end
    -- Every follower gets the outcome, in every mode.
    for gateway in string.gmatch(run.followers, '(%S+):%a') do
      post(gateway, message)
      local gone = left[gateway]
      if gone == nil then gone = {}; left[gateway] = gone end
      gone[#gone + 1] = id
    end
    if read then reading[#reading + 1] = string.format('%d', now + READING_MS); reading[#reading + 1] = id end
  end
end

-- Returns an outcome that the store itself decides. A run that never reached its function has 0 ms.
local function failure(run, state, code, message)
  local text = '{"code":"' .. code .. '","message":' .. cjson.encode(message) .. '}'
  return {state = state, items = run.items, streamed = '0', ms = '0', status = '', result = '', code = code, error = text, head = ''}
end

-- Sends the gathered commands. Called once, at the end of a script that may have ended runs.
local function settle()
  if #released > 0 then send_members('ZREM', K.leases, released) end
  if #due > 0 then send_members('ZADD', K.due, due); send_members('ZADD', K.deliveries, delivered) end
  if #reading > 0 then send_members('ZADD', K.reading, reading) end
  for gateway, ids in pairs(left) do send_members('SREM', K.following .. gateway, ids) end
  send_kept()
  count_bytes()
  send_counts()
  send_messages()
end

-- Contract 5: cancels a run. Ends a queued run. Flags a running run and notifies its worker. Returns the run's state before.
local function cancel_run(id, run, by, handover_ms)
  if not run.cancel then redis.call('HSET', K.run .. id, 'cancel', by) end
  if run.state == 'queued' then
    finish(id, run, failure(run, 'cancelled', 'cancelled', 'The run was cancelled.'), handover_ms)
    return 'queued'
  end
  redis.call('SPUBLISH', K.toWorker .. string.match(run.token, '^(.-):'), 'cancel ' .. id .. ' ' .. run.token)
  return 'running'
end

-- Contract 1, "Disconnects": removes a gateway from a run's followers. If an open run has no other follower, its `absent` time begins: empty continues the run, 0
-- cancels the run now. If an ended run has no other reader, the run may be forgotten.
local function drop_follower(id, gateway, handover_ms)
  local run = load_run(id)
  if run == nil or not run.followers then return end
  local rest = {}
  for other, mode in string.gmatch(run.followers, '(%S+):(%a)') do
    if other ~= gateway and not (mode == 'o' and ENDED[run.state]) then rest[#rest + 1] = other .. ':' .. mode end
  end
  if #rest > 0 then
    redis.call('HSET', K.run .. id, 'followers', table.concat(rest, ' '))
    return
  end
  redis.call('HDEL', K.run .. id, 'followers')
  run.followers = nil
  if ENDED[run.state] then
    redis.call('ZREM', K.reading, id)
    return
  end
  if not run.absent then return end
  if run.absent == '0' then
    cancel_run(id, run, 'left', handover_ms)
  else
    redis.call('ZADD', K.absent, now + run.absent, id)
  end
end
