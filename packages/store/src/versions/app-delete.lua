#!lua flags=allow-oom
-- Contract 7, "Apps": removes a deployed app with all its versions and secrets. The workers withdraw the app when they learn of it.
-- Reap ends its queued runs after that, by the key `removed:`.
--
-- KEYS  1  the project's prefix
-- ARGV  1  app
-- Returns 1, or 0 if no version of the app exists
--@include roll-outs: version_key, end_roll_out
local REMOVED_MS = 24 * 3600000
local app = ARGV[1]
local versions = redis.call('ZRANGE', K.versions .. app, 0, -1)
end_roll_out(app)
for _, version in ipairs(versions) do redis.call('DEL', version_key(app, version), K.buildLog .. app .. ':' .. version) end
redis.call('DEL', K.versions .. app, K.deployment .. app, K.activations .. app)
redis.call('DEL', K.secrets .. app)
redis.call('HDEL', K.secretRevisions, app)
redis.call('SREM', K.deployed, app)
if #versions > 0 then redis.call('SET', K.removed .. app, 1, 'PX', REMOVED_MS) end
return reply(#versions > 0 and 1 or 0)
