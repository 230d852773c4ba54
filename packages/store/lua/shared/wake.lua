-- Wakes the worker that has waited longest for this app. If no worker received the message, wakes the next worker. A wake only moves the
-- worker to the end of the list. The worker's take or the end of its lease removes it. So a lost wake costs a second (reap wakes again), and
-- no run is lost.
local function wake(app)
  local waiting = K.waiting .. app
  for i = 1, redis.call('ZCARD', waiting) do
    local worker = redis.call('ZRANGE', waiting, 0, 0)[1]
    redis.call('ZADD', waiting, 'XX', now_us + i, worker)
    if redis.call('SPUBLISH', K.toWorker .. worker, string.format('wake %s %d', app, now_us)) > 0 then return end
  end
end
