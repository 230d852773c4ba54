#!lua flags=allow-oom
-- Takes an empty project off the index of projects, unless it was used since it was found empty.
--
-- KEYS  1 the index
-- ARGV  1 project  2 its score when it was found empty
-- Returns 1: it was taken off, or 0
if redis.call('ZSCORE', P, ARGV[1]) ~= ARGV[2] then return reply(0) end
return reply(redis.call('ZREM', P, ARGV[1]))
