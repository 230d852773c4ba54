#!lua flags=allow-oom
-- Contract 1, "Disconnects": removes a gateway from the followers of runs after its last reader disconnected. If no other gateway follows
-- a run, the run's `onDisconnect` timer starts (0: the run is cancelled now).
--
-- KEYS  1  the project's prefix
-- ARGV  1  gateway
--       2  number of this call, rising per gateway. A lower number does nothing.
--       3  handover time: ms within which a due webhook must be handed over
--       runs  run ids
-- Returns the ids of runs that ended here and have a due webhook
--@include ending: due_runs, drop_follower, settle
local gateway, number, handover = unpack(ARGV, 1, 3)
handover = tonumber(handover)
if tonumber(number) < tonumber(redis.call('HGET', K.numbers, gateway) or 0) then return reply({}) end
redis.call('HSET', K.numbers, gateway, number)
for i = 4, #ARGV do
  local id = ARGV[i]
  redis.call('SREM', K.following .. gateway, id)
  drop_follower(id, gateway, handover)
end
settle()
return reply(due_runs)
