-- Contract 7, "Versions": moves queued runs between the queues of an app's versions.
--@include run: queue_of, wake_worker

-- Moves at most `most` runs to the queue of another version. The runs keep their order and their time in the queue.
-- An empty version is the app's own queue (run: queue_of). `timeout` is the queue timeout (ms) of the moved runs.
local function move_runs(app, from, to, timeout, most)
  local source, target = K.queue .. queue_of(app, from), queue_of(app, to)
  local moved = redis.call('ZRANGE', source, 0, most - 1, 'WITHSCORES')
  for n = 1, #moved, 2 do
    local id = moved[n]
    if redis.call('HGET', K.run .. id, 'state') == 'queued' then
      redis.call('HSET', K.run .. id, 'v', to)
      redis.call('ZADD', K.queue .. target, moved[n + 1], id)
    end
    redis.call('ZREM', source, id)
  end
  if #moved == 0 then return end
  redis.call('HSETNX', K.queues, target, timeout)
  wake_worker(target)
end
