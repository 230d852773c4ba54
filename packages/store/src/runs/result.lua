#!lua flags=no-writes
-- Contract 5: reads a piece of an ended run's result.
--
-- KEYS  1  the project's prefix
-- ARGV  1  run id
--       2  first byte (from 1)
--       3  last byte
-- Returns {bytes}, or {} if the run is gone
local id, first, last = ARGV[1], ARGV[2], ARGV[3]
local result = redis.call('HGET', K.run .. id, 'body')
if not result then return reply({}) end
return reply({string.sub(result, first, last)})
