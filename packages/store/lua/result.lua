#!lua flags=no-writes
-- Contract 5: reads a piece of an ended run's result.
--
-- KEYS  1  the project's prefix
-- ARGV  1  run id
--       2  first byte (from 1)
--       3  last byte
-- Returns {bytes}, or {} if the run is gone
local result = redis.call('HGET', K.run .. ARGV[1], 'body')
if not result then return reply({}) end
return reply({string.sub(result, ARGV[2], ARGV[3])})
