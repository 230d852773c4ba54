#!lua flags=allow-oom
-- Open runs of a gateway and how far its fastest reader of each is: what is missing among its followers is registered again. This is the
-- gateway's lease, and the second way of live entries and acknowledgements. Its list may come in several calls.
--
-- KEYS  1 the project's prefix
-- ARGV  1 gateway  2 number of this call (rising per gateway; a lower one or a repeat does nothing: it does not know who left since)
--       3 lease (ms)  then per run: id, number of the last item taken, what it follows (o, i, l, f: see outbox)
-- Returns {stale (1/0), {per run: {state, number of the last item, for a follower of lines the number of the last one}, or {} when gone}, how many open runs the gateway stands at as a follower}
--@include clock
--@include record
--@include outbox
--@include followers
local gateway, number = ARGV[1], tonumber(ARGV[2])
if number <= tonumber(redis.call('HGET', K.numbers, gateway) or 0) then return reply({1, {}, 0}) end
redis.call('HSET', K.numbers, gateway, number)
redis.call('ZADD', K.gateways, now + ARGV[3], gateway)
local answers = {}
for i = 4, #ARGV, 3 do
  local id, mode = ARGV[i], ARGV[i + 2]
  local run, answer = load_run(id), {}
  if run then
    answer = {run.state, run.items}
    if mode == 'l' or mode == 'f' then answer[3] = tonumber(redis.call('HGET', K.run .. id, 'lines') or 0) end
    add_follower(id, run, gateway, mode)
    if ENDED[run.state] then
      -- Somebody still reads what it left: it is not forgotten meanwhile.
      redis.call('ZADD', K.reading, now + ARGV[3], id)
    else
      local taken = math.min(tonumber(ARGV[i + 1]), run.items)
      if run.paced and taken > tonumber(redis.call('HGET', K.run .. id, 'taken') or 0) then
        redis.call('HSET', K.run .. id, 'taken', taken)
      end
    end
  end
  answers[#answers + 1] = answer
end
return reply({0, answers, redis.call('SCARD', K.following .. gateway)})
