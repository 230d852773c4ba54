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
--@include clock
--@include record
--@include bytes
--@include many
--@include outbox
--@include keep
--@include claim
--@include finish
--@include departure
if tonumber(ARGV[2]) < tonumber(redis.call('HGET', K.numbers, ARGV[1]) or 0) then return reply({}) end
redis.call('HSET', K.numbers, ARGV[1], ARGV[2])
for i = 4, #ARGV do
  redis.call('SREM', K.following .. ARGV[1], ARGV[i])
  drop_follower(ARGV[i], ARGV[1], tonumber(ARGV[3]))
end
settle()
return reply(due_runs)
