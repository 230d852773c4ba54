#!lua flags=allow-oom
-- Takes an empty project off the index of projects, unless it was used since it was found empty.
--
-- KEYS  1 the prefix of the service's keys
-- ARGV  1 project  2 its score when it was found empty
-- Returns 1: it was taken off, or 0
if redis.call('ZSCORE', K.projects, ARGV[1]) ~= ARGV[2] then return reply(0) end
return reply(redis.call('ZREM', K.projects, ARGV[1]))
