#!lua
-- Contract 7, "Versions": begins the roll-out of a version that exists. A repeat begins no second one.
--
-- KEYS  1  the project's prefix
-- ARGV  1  app
--       2  version
--       3  author (may be empty)
--       4  longest time of the roll-out (ms)
-- Returns the state of the version, empty for an unknown version. A failed version is not activated.
--@include roll-outs: version_key, supersede, begin_roll_out
local app, version, author, term = unpack(ARGV)
local state = redis.call('HGET', version_key(app, version), 'state')
local target = redis.call('HGET', K.deployment .. app, 'target')
if not state then return reply('') end
if state == 'active' then
  supersede(app, version)
elseif state ~= 'failed' then
  if target == version then redis.call('HSET', K.deployment .. app, 'mode', 'activate', 'by', author)
  else begin_roll_out(app, version, 'activate', author, tonumber(term)) end
end
return reply(state)
