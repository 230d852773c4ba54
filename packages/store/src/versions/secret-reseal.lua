#!lua flags=allow-oom
-- Contract 7, "Secrets": replaces the sealed form of an app's secret. Its value stays, so the app does not restart. A repeat changes nothing.
--
-- KEYS  1  the project's prefix
-- ARGV  1  app
--       2  name of the secret
--       3  the present entry: `<updated (ms)> <sealed value>`
--       4  the new entry
-- Returns 1, or 0 if the entry is another: a user has set or removed the secret meanwhile
local app, name, before, after = unpack(ARGV)
if redis.call('HGET', K.secrets .. app, name) ~= before then return reply(0) end
redis.call('HSET', K.secrets .. app, name, after)
return reply(1)
