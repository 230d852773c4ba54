#!lua flags=allow-oom
-- Contract 7, "Versions": a worker's report about the version that it prepares. The last missing report activates the version.
--
-- KEYS  1  the project's prefix
-- ARGV  1  app
--       2  version
--       3  number of the roll-out
--       4  worker
--       5  number of this report, rising per worker and roll-out
--       6  step: preparing | waiting | ready | failed
--       7  reason of `waiting` or `failed`
--       8  duration of the steps (ms); 0 activates at once
--       9  percent of failed calls that undo the steps; empty: the steps are never undone
--       10 number of ended calls of the version on this worker, and of the failed calls among them: `<calls> <failed>`
--       lines  lines of the version's log
-- Returns current | ended | stale. ended: this report has ended the roll-out. stale: the roll-out has ended before, and nothing changed.
-- A repeat, or a late copy of a report before the worker's last report, changes nothing.
--@include roll-outs: undo_by_service, settle, write_lines
local app, version, number, worker, report, step, reason, duration, abort, counts = unpack(ARGV, 1, 10)
if redis.call('HGET', K.deployment .. app, 'number') ~= number then return reply('stale') end
local reports = K.rollOut .. app
-- The field has a colon, which no worker's name has.
if tonumber(redis.call('HGET', reports, 'reports:' .. worker) or 0) < tonumber(report) then
  redis.call('HSET', reports, 'reports:' .. worker, report, 'counts:' .. worker, counts, worker, step == 'waiting' and 'waiting ' .. reason or step)
  local lines = {}
  for i = 11, #ARGV do lines[i - 10] = ARGV[i] end
  write_lines(app, version, lines)
  if step == 'ready' then redis.call('HSET', K.deployment .. app, 'duration', duration, 'abort', abort) end
  if step == 'failed' then
    undo_by_service(app, version, reason)
    return reply('ended')
  end
end
return reply(settle(app, worker) == 1 and 'ended' or 'current')
