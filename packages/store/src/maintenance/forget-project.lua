#!lua flags=allow-oom
-- Removes an empty project from the index of projects, unless the project was used since it was found empty.
--
-- KEYS  1  the index
-- ARGV  1  project
--       2  the project's score when it was found empty
-- Returns 1 if the project was removed, else 0
local project, score = ARGV[1], ARGV[2]
if redis.call('ZSCORE', P, project) ~= score then return reply(0) end
return reply(redis.call('ZREM', P, project))
