#!lua flags=allow-oom
-- Contract 5, "Cancel: `POST /runs/{run_id}/cancel`": cancels runs. A queued run ends here and never starts.
-- A running run is flagged, and its worker is notified.
-- If the caller asks for a tombstone, an unknown run leaves one, and accept obeys it. A gateway asks for a tombstone after an accept
-- without an answer, because that accept may still execute. Clients never leave tombstones, because anybody can invent ids.
--
-- KEYS  1  the project's prefix
-- ARGV  1  handover time: ms within which a due webhook must be handed over
--       2  lifetime of a tombstone (ms; 0 is no tombstone)
--       runs  per run: id, request id
-- Returns per run {state before the cancel: queued | running | ended | unknown, webhook due (1/0)}. A repeated request gets its first answer.
--@include run: ENDED, load_run
--@include ending: cancel_run, settle
local handover, tombstone_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local answers = {}
for i = 3, #ARGV, 2 do
  local id, request = unpack(ARGV, i, i + 1)
  local run = load_run(id)
  local found
  if run == nil then
    if tombstone_ms > 0 then
      redis.call('ZREMRANGEBYSCORE', K.tombstones, '-inf', now)
      redis.call('ZADD', K.tombstones, now + tombstone_ms, id)
      redis.call('PEXPIRE', K.tombstones, tombstone_ms)
    end
    found = 'unknown'
  elseif not ENDED[run.state] then
    found = cancel_run(id, run, request, handover)
  elseif run.cancel == request then
    found = run.started and run.started ~= '-' and 'running' or 'queued'
  else
    found = 'ended'
  end
  answers[#answers + 1] = {found, found == 'queued' and run.hook and 1 or 0}
end
settle()
return reply(answers)
