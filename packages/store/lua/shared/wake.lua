-- Wakes the worker that has waited longest for this app; if nobody received it, the next. The wake only moves a worker to the
-- end: its own take, or its lease's end, removes it, so a lost wake costs a second (reap wakes again), never a run.
local function wake(app)
  local waiting = K.waiting .. app
  for i = 1, redis.call('ZCARD', waiting) do
    local worker = redis.call('ZRANGE', waiting, 0, 0)[1]
    redis.call('ZADD', waiting, 'XX', now_us + i, worker)
    if redis.call('SPUBLISH', K.toWorker .. worker, string.format('wake %s %d', app, now_us)) > 0 then return end
  end
end
