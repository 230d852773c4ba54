#!lua flags=allow-oom
-- Ends attempts: the outcome goes to the record, the lease is released, followers are told, a webhook becomes due.
--
-- KEYS  1 the project's prefix
-- ARGV  1 time in which a due webhook must be handed over (ms)
--       then per run: id, token, state, how many items, streamed (1/0), run time (ms text), HTTP status or empty, result, error (JSON),
--       head of the answer (JSON) or empty, retry (1: back to the queue, once, if no item and no head has left and nobody cancelled)
-- Returns per run code, last number, webhook due (1/0):
--       ended (also when this attempt ended it before) | requeued (likewise) | behind (items are missing) | lost (fence)
--@include clock
--@include record
--@include bytes
--@include many
--@include outbox
--@include keep
--@include claim
--@include wake
--@include finish
local answers = {}
for i = 2, #ARGV, 11 do
  local id, token, retry = ARGV[i], ARGV[i + 1], ARGV[i + 10]
  local run = load_run(id)
  local code = 'lost'
  if run == nil then
    code = 'lost'
  elseif run.token ~= token then
    code = 'lost'
  elseif ENDED[run.state] then
    code = 'ended'
  elseif run.state == 'queued' then
    code = 'requeued'
  elseif retry == '1' and run.items == 0 and run.attempt < 2 and not run.cancel
    and redis.call('HEXISTS', K.run .. id, 'head') == 0 then
    redis.call('HSET', K.run .. id, 'state', 'queued', 'queued', now_text, 'attempt', string.format('%d %s -', run.attempt, token))
    redis.call('ZREM', K.leases, id)
    redis.call('ZADD', K.queue .. run.app, now_us, id)
    wake(run.app)
    code = 'requeued'
  elseif tonumber(ARGV[i + 3]) > run.items then
    code = 'behind'
  else
    finish(id, run, {state = ARGV[i + 2], items = run.items, streamed = ARGV[i + 4], ms = ARGV[i + 5], status = ARGV[i + 6],
      result = ARGV[i + 7], error = ARGV[i + 8], head = ARGV[i + 9]}, tonumber(ARGV[1]))
    code = 'ended'
  end
  local n = #answers
  answers[n + 1], answers[n + 2], answers[n + 3] = code, run and run.items or 0, code == 'ended' and run.hook and 1 or 0
end
settle()
return reply(answers)
