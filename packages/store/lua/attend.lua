#!lua flags=allow-oom
-- A gateway's open runs and how far its fastest reader of each is. The list is the truth: what is missing is registered again, the
-- rest is dropped. This is the gateway's lease, and the second way of live entries and acknowledgements.
--
-- KEYS  1 the project's prefix
-- ARGV  1 gateway  2 number of this call (rising per gateway; a lower one or a repeat
--         does nothing: a list resent after a lost reply does not know what was accepted since)
--       3 lease (ms)  4 time to hand over a due webhook (ms)
--       then per run: id, number of the last item taken, what it follows (i, o)
-- Returns {stale (1/0), {per run: {state, last number}, or {} when gone}, ids of runs that ended here and have a webhook due}
--@include clock
--@include record
--@include outbox
--@include finish
--@include departure
local gateway, number, handover = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
if number <= tonumber(redis.call('HGET', K.numbers, gateway) or 0) then return {1, {}, {}} end
redis.call('HSET', K.numbers, gateway, number)
redis.call('ZADD', K.gateways, now + ARGV[3], gateway)
local listed, answers = {}, {}
for i = 5, #ARGV, 3 do
  local id, taken, mode = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  listed[id] = true
  local run, answer = load_run(id), {}
  if run then
    answer = {run.state, run.items}
    if not ENDED[run.state] then
      add_follower(id, run, gateway, mode)
      if taken > run.taken then redis.call('HSET', K.run .. id, 'taken', taken) end
    end
  end
  answers[#answers + 1] = answer
end
for _, id in ipairs(redis.call('SMEMBERS', K.following .. gateway)) do
  if not listed[id] then
    redis.call('SREM', K.following .. gateway, id)
    drop_follower(id, gateway, handover)
  end
end
send_outbox()
return {0, answers, due_runs}
