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
--       lines  lines of the version's log
-- Returns current | ended | stale. ended: this report has ended the roll-out. stale: the roll-out has ended before, and nothing changed.
-- A repeat writes no line twice.
--@include roll-outs: version_key, undo, settle
local app, version, number, worker, report, step, reason = unpack(ARGV, 1, 7)
local MOST_LINES = 1000
if redis.call('HGET', K.deployment .. app, 'number') ~= number then return reply('stale') end
local reports = K.rollOut .. app
local lines = K.buildLog .. app .. ':' .. version
-- The field has a colon, which no worker's name has.
if tonumber(redis.call('HGET', reports, 'reports:' .. worker) or 0) < tonumber(report) then
  redis.call('HSET', reports, 'reports:' .. worker, report)
  for i = 8, #ARGV do redis.call('RPUSH', lines, ARGV[i]) end
  local over = redis.call('LLEN', lines) - MOST_LINES
  if over > 0 then
    redis.call('LTRIM', lines, -MOST_LINES, -1)
    redis.call('HINCRBY', version_key(app, version), 'cut', over)
  end
end
redis.call('HSET', reports, worker, step == 'waiting' and 'waiting ' .. reason or step)
if step == 'failed' then
  undo(app, version, reason)
  return reply('ended')
end
return reply(settle(app, worker) == 1 and 'ended' or 'current')
