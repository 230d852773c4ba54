#!lua flags=allow-oom
-- Takes queued runs for a worker's free slots. A taken run is running, has a new attempt, and is leased to the worker. If a queue has fewer
-- runs than asked for, the worker waits for that queue, and the next accept wakes the worker.
--
-- KEYS  1  the project's prefix
-- ARGV  1  worker
--       2  number of this take, rising. `<worker>:<number>` is the attempt's token (fence).
--       3  lease (ms)
--       4  bytes of parameters at most. One run may exceed the limit.
--       queues  per queue: name (parts/run: queue_of), free slots, version that the worker serves (empty if unknown).
--               With 0 slots, the worker stops waiting for the queue.
-- Returns {now_us, more, runs}.
--   more  1 if a queue may hold further runs for these slots
--   runs  per run: id, call (see parts/run), number of the attempt, parameters, place of its queue in the arguments (from 1)
-- A call with the same number returns the same runs, if they are still leased to the worker. A call with a lower number returns none.
-- Gateways that follow everything of a run (f: see parts/run) receive a message that the run starts.
--@include run: is_of, number_of, pack_attempt, target_of, queue_of, notify, send_messages, wake_worker
-- The record names the version in the field `v`. The short name keeps a small record in its size class of jemalloc.
local worker, number, lease, bytes_left = unpack(ARGV, 1, 4)
local token = worker .. ':' .. number
number, lease, bytes_left = tonumber(number), tonumber(lease), tonumber(bytes_left)
local took = redis.call('HMGET', K.took .. worker, 'number', 'runs')
local last = tonumber(took[1] or 0)
if number < last then return reply({now_us, 0}) end
redis.call('ZADD', K.workers, now + lease, worker)

-- Returns state, call, attempt, parameters and followers.
local function fields_of(id) return unpack(redis.call('HMGET', K.run .. id, 'state', 'call', 'attempt', 'body', 'followers'), 1, 5) end
-- The bound of one call, for any number of free slots. Redis serves no other client during the call.
local MOST = 256
local answer, ids, more = {now_us, 0}, {}, 0
local function hand_out(id, call, attempt_number, params, place)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4], answer[n + 5] = id, call, attempt_number, params or '', place
end
local remember = {'number', number, 'runs', ''}
if number == last then
  local places = {}
  for i = 5, #ARGV, 3 do places[ARGV[i]] = (i - 2) / 3 end
  for id in string.gmatch(took[2], '%S+') do
    local state, call, attempt, params = fields_of(id)
    if state == 'running' and is_of(attempt, token) then
      local queue = queue_of(target_of(call), redis.call('HGET', K.run .. id, 'v'))
      hand_out(id, call, number_of(attempt), params, places[queue] or 1)
    end
  end
  answer[2] = 1
  return reply(answer)
end

for i = 5, #ARGV, 3 do
  local name, slots, version = unpack(ARGV, i, i + 2)
  slots = tonumber(slots)
  local queue, gone, got, full = K.queue .. name, {}, 0, false
  if slots > 0 then
    for _, id in ipairs(redis.call('ZRANGE', queue, 0, math.min(slots, MOST) - 1)) do
      local state, call, earlier, params, followers = fields_of(id)
      if state ~= 'queued' or not call then
        gone[#gone + 1] = id
      else
        local size = #params
        if #ids == MOST or #ids > 0 and size > bytes_left then full = true; break end
        bytes_left = bytes_left - size
        local attempt_number = earlier and string.format('%d', number_of(earlier) + 1) or '1'
        redis.call('HSET', K.run .. id, 'state', 'running', 'attempt', pack_attempt(attempt_number, token, now_text), 'v', version)
        if followers and string.find(followers, ':f', 1, true) then
          notify(followers, 'start', string.format('s %s %s %s\n', id, token, now_text))
        end
        gone[#gone + 1] = id
        ids[#ids + 1] = id
        hand_out(id, call, attempt_number, params, (i - 2) / 3)
        got = got + 1
      end
    end
    if #gone > 0 then redis.call('ZREM', queue, unpack(gone)) end
  end
  if got == MOST then full = true end
  if full then more = 1 end
  if slots > got and not full then
    redis.call('ZADD', K.waiting .. name, now_us, worker)
    remember[#remember + 1] = 'waits ' .. name
    remember[#remember + 1] = '1'
  else
    redis.call('ZREM', K.waiting .. name, worker)
    if slots == 0 then redis.call('HDEL', K.took .. worker, 'waits ' .. name) end
    -- This worker is full and runs remain queued, so the next waiting worker is woken.
    if not full and redis.call('EXISTS', queue) == 1 then wake_worker(name) end
  end
end
if #ids > 0 then
  local leases, term = {}, string.format('%d', now + lease)
  for n, id in ipairs(ids) do leases[2 * n - 1], leases[2 * n] = term, id end
  redis.call('ZADD', K.leases, unpack(leases))
end
remember[4] = table.concat(ids, ' ')
redis.call('HSET', K.took .. worker, unpack(remember))
send_messages()
answer[2] = more
return reply(answer)
