#!lua flags=allow-oom
-- Contract 3: renews a gateway's lease and registers the gateway again as a follower of its open runs, if the registration is missing.
-- Takes over the positions of the gateway's fastest readers. Live messages may be lost, so the answer repeats the runs' last numbers.
-- A gateway may send its list in several calls.
--
-- KEYS  1  the project's prefix
-- ARGV  1  gateway
--       2  number of this call, rising per gateway. A lower or equal number does nothing, because such a call does not know later unfollows.
--       3  lease (ms)
--       runs  per run: id, number of the last item taken, what the gateway follows (o, i, l, f: see parts/run)
-- Returns {stale (1/0), answers, number of open runs that the gateway follows}. There is one answer per run:
--       known  {state, number of the last item}, and for a follower of lines the number of the last line
--       gone   {}
--@include run: ENDED, load_run, add_follower
local gateway, number, lease = unpack(ARGV, 1, 3)
number, lease = tonumber(number), tonumber(lease)
if number <= tonumber(redis.call('HGET', K.numbers, gateway) or 0) then return reply({1, {}, 0}) end
redis.call('HSET', K.numbers, gateway, number)
redis.call('ZADD', K.gateways, now + lease, gateway)
local answers = {}
for i = 4, #ARGV, 3 do
  local id, position, mode = unpack(ARGV, i, i + 2)
  local run, answer = load_run(id), {}
  if run then
    answer = {run.state, run.items}
    if mode == 'l' or mode == 'f' then answer[3] = tonumber(redis.call('HGET', K.run .. id, 'lines') or 0) end
    add_follower(id, run, gateway, mode)
    if ENDED[run.state] then
      -- A reader still reads the ended run, so the run is not forgotten.
      redis.call('ZADD', K.reading, now + lease, id)
    else
      position = math.min(tonumber(position), run.items)
      if run.paced and position > tonumber(redis.call('HGET', K.run .. id, 'taken') or 0) then
        redis.call('HSET', K.run .. id, 'taken', position)
      end
    end
  end
  answers[#answers + 1] = answer
end
return reply({0, answers, redis.call('SCARD', K.following .. gateway)})
