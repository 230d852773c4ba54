#!lua flags=allow-oom
-- The gateway's last reader of these runs has gone. Where no other gateway follows, the run's absent time begins (0: cancelled now).
--
-- KEYS  1 the project's prefix
-- ARGV  1 gateway  2 number of this call (rising per gateway; a lower one does nothing)  3 time to hand over a due webhook (ms)
--       then run ids
-- Returns the ids of runs that ended here and have a webhook due
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
