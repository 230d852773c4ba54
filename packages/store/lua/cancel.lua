#!lua flags=allow-oom
-- Cancels runs. A queued one ends here and never starts; a running one is flagged and its worker told; an unknown one leaves a
-- tombstone that accept obeys, for the word may have overtaken it.
--
-- KEYS  1 the project's prefix
-- ARGV  1 time in which a due webhook must be handed over (ms)  2 how long a tombstone stands (ms)  then per run: id, request id
-- Returns per run {what it was: queued | running | ended | unknown, webhook due (1/0)}; the same request again gets its first answer.
--@include clock
--@include record
--@include bytes
--@include many
--@include outbox
--@include keep
--@include claim
--@include finish
--@include departure
local handover, answers = tonumber(ARGV[1]), {}
for i = 3, #ARGV, 2 do
  local id, request = ARGV[i], ARGV[i + 1]
  local run = load_run(id)
  local found
  if run == nil then
    redis.call('ZREMRANGEBYSCORE', K.tombstones, '-inf', now)
    redis.call('ZADD', K.tombstones, now + ARGV[2], id)
    redis.call('PEXPIRE', K.tombstones, ARGV[2])
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
