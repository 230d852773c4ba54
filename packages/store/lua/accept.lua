#!lua
-- Accepts runs: idempotency claim, limits, record, place in the app's queue; wakes one waiting worker per app.
--
-- KEYS  1 the project's prefix
-- ARGV  1 the store's time (ms) by which this must execute; a call that Redis held back longer is refused, for its caller has gone
--       2 gateway  3 the gateway's lease (ms)
--       then per run: id, app, function, parameters, webhook URL, sealed secret, promised (1/0), paced (1/0), retention (ms),
--       absent time (ms, empty: go on), claim (hash of the idempotency key, or empty), fingerprint, queue limit, queue timeout (ms),
--       what the gateway follows (i items and outcome, o outcome, - nothing)
-- Returns {now, one answer per run}, or {now} when late:
--       accepted (also when asked again) | joined <run id> | conflict | overloaded | cancelled (before it came)
-- Not allowed when memory is short: nothing is accepted that cannot be kept.
--@include clock
--@include wake
if now > tonumber(ARGV[1]) then return {now} end
local gateway, answers, followed, woken = ARGV[2], {}, {}, {}
redis.call('ZADD', K.gateways, now + ARGV[3], gateway)
local tombstones = redis.call('EXISTS', K.tombstones) == 1
local index = 0

local function accept(id, app, fn, params, hook, secret, promised, paced, keep, absent, claim, fingerprint, limit, timeout, live)
  local key = K.run .. id
  if redis.call('EXISTS', key) == 1 then return 'accepted' end
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
  local queue = K.queue .. app
  if redis.call('ZCARD', queue) >= tonumber(limit) then return 'overloaded' end
  local fields = {'state', 'queued', 'app', app, 'fn', fn, 'accepted', now_text, 'queued', now_text, 'keep', keep, 'params', params}
  local function put(name, value) fields[#fields + 1] = name; fields[#fields + 1] = value end
  if promised == '1' then put('promised', '1') end
  if paced == '1' then put('paced', '1') end
  if hook ~= '' then put('hook', hook) end
  if secret ~= '' then put('secret', secret) end
  if absent ~= '' then put('absent', absent) end
  if claim ~= '' then
    put('claim', claim)
    redis.call('SET', K.idempotency .. claim, id .. ' ' .. fingerprint)
  end
  if live ~= '-' then
    put('followers', gateway .. ':' .. live)
    followed[#followed + 1] = id
  elseif absent ~= '' and absent ~= '0' then
    -- Nobody reads it yet: its time without a reader runs.
    redis.call('ZADD', K.absent, now + absent, id)
  end
  redis.call('HSET', key, unpack(fields))
  redis.call('ZADD', queue, now_us + index, id)
  index = index + 1
  woken[app] = timeout
  return 'accepted'
end

for i = 4, #ARGV, 15 do answers[#answers + 1] = accept(unpack(ARGV, i, i + 14)) end
if #followed > 0 then redis.call('SADD', K.following .. gateway, unpack(followed)) end
for app, timeout in pairs(woken) do
  redis.call('HSET', K.queues, app, timeout)
  wake(app)
end
return {now, answers}
