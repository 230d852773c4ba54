#!lua
-- Contract 7, "Deploy a version": records a version and begins its roll-out. Its bundle is in the bundle store already.
--
-- KEYS  1  the project's prefix
-- ARGV  1  app
--       2  version
--       3  digest of the bundle
--       4  bytes of the bundle
--       5  text of the manifest (may be empty)
--       6  author (may be empty)
--       7  mode of the roll-out: activate | build
--       8  longest time of the roll-out (ms)
-- Returns {created (1/0), state}
-- A repeat finds the version and its roll-out, and begins no second one. It returns created 0.
--@include roll-outs: version_key, supersede, begin_roll_out
local app, version, bundle, size, manifest, author, mode, term = unpack(ARGV)
local key = version_key(app, version)
local state = redis.call('HGET', key, 'state')
local active, target, target_mode = unpack(redis.call('HMGET', K.deployment .. app, 'active', 'target', 'mode'))
redis.call('HSET', key, 'bundle', bundle, 'size', size, 'manifest', manifest, 'author', author, 'deployed', now_text)
redis.call('ZADD', K.versions .. app, now, version)
redis.call('DEL', K.removed .. app)
local created = 0
if not state or state == 'failed' then
  if not state then created = 1; redis.call('HSET', key, 'created', now_text) end
  state = 'building'
  redis.call('HSET', key, 'state', state)
  redis.call('DEL', K.buildLog .. app .. ':' .. version)
  redis.call('HDEL', key, 'cut')
end
if active == version then
  supersede(app, version)
elseif target == version then
  -- A roll-out that only builds is widened to an activation, but not the other way.
  if mode == 'activate' and target_mode == 'build' then redis.call('HSET', K.deployment .. app, 'mode', mode, 'by', author) end
elseif mode == 'activate' or state == 'building' then
  begin_roll_out(app, version, mode, author, tonumber(term))
end
return reply({created, state})
