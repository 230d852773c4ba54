#!lua flags=allow-oom
-- Contract 5: ends attempts. It writes the outcome to the record, releases the lease, notifies followers, and marks the webhook as due.
--
-- KEYS  1  the project's prefix
-- ARGV  1  handover time: ms within which a due webhook must be handed over
--       2  number of kinds of outcomes
--       kinds  per kind: state, number of items, streamed (1/0), HTTP status or empty, error (JSON), head of the answer (JSON) or empty, retry,
--              version
--       retry  1 puts the run back into the queue once, if the run has no item, no head and no cancel request
--       version  the app's version that executed the run, if the take recorded another version; otherwise empty
--       runs   per run: kind (from 1), id, token, run time (ms, as text), result
-- Returns per run code, last number, webhook due (1/0). The code is one of these:
--       ended     also if this attempt ended the run before
--       requeued  also if this attempt was requeued before
--       behind    items are missing
--       lost      another attempt holds the run (fence)
--       refused   ended as output_too_large, now or before: the outcome does not fit into the project's share
--       again     the outcome does not fit, but a gateway is making room: ask again
--@include clock
--@include record
--@include bytes
--@include many
--@include outbox
--@include keep
--@include claim
--@include room
--@include wake
--@include finish
-- The same text as overShare in src/runs/over-share.ts.
local TOO_LARGE = '{"code":"output_too_large","message":"The output exceeds the share of the run store that its project may use."}'
local handover, kinds, answers, runs_at = tonumber(ARGV[1]), {}, {}, 3 + 8 * ARGV[2]
for i = 3, runs_at - 1, 8 do
  kinds[#kinds + 1] = {state = ARGV[i], least = tonumber(ARGV[i + 1]), streamed = ARGV[i + 2], status = ARGV[i + 3], error = ARGV[i + 4],
    head = ARGV[i + 5], retry = ARGV[i + 6] == '1', version = ARGV[i + 7]}
end
for i = runs_at, #ARGV, 5 do
  local outcome, id, token = kinds[tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2]
  local run = load_run(id)
  local code = 'lost'
  if run == nil then
    code = 'lost'
  elseif run.token ~= token then
    code = 'lost'
  elseif ENDED[run.state] then
    code = 'ended'
    if outcome.state ~= 'failed' and redis.call('HGET', K.run .. id, 'error') == TOO_LARGE then code = 'refused' end
  elseif run.state == 'queued' then
    code = 'requeued'
  elseif outcome.retry and run.items == 0 and run.attempt < 2 and not run.cancel
    and redis.call('HEXISTS', K.run .. id, 'head') == 0 then
    redis.call('HSET', K.run .. id, 'state', 'queued', 'queued', now_text, 'attempt', string.format('%d %s -', run.attempt, token))
    redis.call('ZREM', K.leases, id)
    redis.call('ZADD', K.queue .. run.app, now_us, id)
    wake(run.app)
    code = 'requeued'
  elseif outcome.least > run.items then
    code = 'behind'
  else
    outcome.items, outcome.ms, outcome.result = run.items, ARGV[i + 3], ARGV[i + 4]
    if outcome.version ~= '' then redis.call('HSET', K.run .. id, 'v', outcome.version) end
    local size
    code = 'ended'
    if #outcome.result + #outcome.error + #outcome.head > OUTCOME then
      size = size_with(id, run, outcome)
      -- The run is no longer under way, so its own reserve is free.
      local room = make_room(size - run.size - RESERVED)
      if room == 'again' then
        code = 'again'
      elseif room == 'full' then
        code, size = 'refused', nil
        local streamed = outcome.streamed
        outcome = failure(run, 'failed', TOO_LARGE)
        outcome.streamed, outcome.ms = streamed, ARGV[i + 3]
      end
    end
    if code ~= 'again' then finish(id, run, outcome, handover, size) end
  end
  local n = #answers
  answers[n + 1], answers[n + 2], answers[n + 3] = code, run and run.items or 0, (code == 'ended' or code == 'refused') and run.hook and 1 or 0
end
settle()
return reply(answers)
