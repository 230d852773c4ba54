#!lua flags=allow-oom
-- Contract 5: ends attempts. It writes the outcome to the record, releases the lease, notifies followers, and marks the webhook as due.
--
-- KEYS  1  the project's prefix
-- ARGV  1  handover time: ms within which a due webhook must be handed over
--       2  number of kinds of outcomes
--       kinds  per kind: state, number of items, streamed (1/0), HTTP status, code of the error, error (JSON), head of the answer (JSON),
--              retry, version. An absent value is empty.
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
--@include run: ENDED, load_run, pack_attempt, queue_of, wake_worker
--@include memory: OUTCOME, RESERVED, check_share
--@include ending: read_parameters, size_with, finish, failure, settle
-- The same text as in src/runs/over-share.ts.
local TOO_LARGE = 'The output exceeds the share of the run store that its project may use.'
-- The default of `queue_timeout` (ms).
local QUEUE_TIMEOUT = '600000'
local handover, kind_count = tonumber(ARGV[1]), ARGV[2]
local kinds, answers, runs_at = {}, {}, 3 + 9 * kind_count
for i = 3, runs_at - 1, 9 do
  local state, least, streamed, status, error_code, error, head, retry, version = unpack(ARGV, i, i + 8)
  kinds[#kinds + 1] = {state = state, least = tonumber(least), streamed = streamed, status = status, code = error_code, error = error,
    head = head, retry = retry == '1', version = version}
end
for i = runs_at, #ARGV, 5 do
  local kind, id, token, ms, result = unpack(ARGV, i, i + 4)
  local outcome, run, code = kinds[tonumber(kind)], load_run(id), 'ended'
  if run == nil or run.token ~= token then
    code = 'lost'
  elseif ENDED[run.state] then
    if redis.call('HEXISTS', K.run .. id, 'refused') == 1 then code = 'refused' end
  elseif run.state == 'queued' then
    code = 'requeued'
  elseif outcome.retry and run.items == 0 and run.attempt < 2 and not run.cancel
    and redis.call('HEXISTS', K.run .. id, 'head') == 0 then
    redis.call('HSET', K.run .. id, 'state', 'queued', 'queued', now_text, 'attempt', pack_attempt(string.format('%d', run.attempt), token, '-'))
    redis.call('ZREM', K.leases, id)
    local queue = queue_of(run.app, redis.call('HGET', K.run .. id, 'v'))
    redis.call('ZADD', K.queue .. queue, now_us, id)
    -- Reap may have removed the entry of a version that is no longer active.
    redis.call('HSETNX', K.queues, queue, QUEUE_TIMEOUT)
    wake_worker(queue)
    code = 'requeued'
  elseif outcome.least > run.items then
    code = 'behind'
  else
    outcome.items, outcome.ms, outcome.result = run.items, ms, result
    if outcome.version ~= '' then redis.call('HSET', K.run .. id, 'v', outcome.version) end
    local size
    read_parameters(id, run)
    if #outcome.result + #outcome.error + #outcome.head + #run.parameters > OUTCOME then
      size = size_with(id, run, outcome)
      -- The run is no longer under way, so its own reserve is free.
      local share = check_share(size - run.size - RESERVED)
      if share ~= 'ok' and run.parameters ~= '' then
        -- The outcome has priority over the parameters.
        run.parameters = ''
        size = size_with(id, run, outcome)
        share = check_share(size - run.size - RESERVED)
      end
      if share == 'again' then
        code = 'again'
      elseif share == 'full' then
        code, size = 'refused', nil
        local streamed = outcome.streamed
        outcome = failure(run, 'failed', 'output_too_large', TOO_LARGE)
        outcome.streamed, outcome.ms, outcome.refused = streamed, ms, true
      end
    end
    if code ~= 'again' then finish(id, run, outcome, handover, size) end
  end
  local n = #answers
  answers[n + 1], answers[n + 2], answers[n + 3] = code, run and run.items or 0, (code == 'ended' or code == 'refused') and run.hook and 1 or 0
end
settle()
return reply(answers)
