#!lua flags=allow-oom
-- Contract 7, "Versions": removes old versions of the project's apps with their logs. A repeat finds nothing to remove.
-- The versions that were deployed or activated last stay for a rollback. Failed versions are counted apart, because they
-- cannot serve. A version stays while it is active, building or the target of a roll-out, and while a queued or running run needs it.
--
-- KEYS  1  the project's prefix
-- ARGV  1  number of versions of an app that stay, and of failed versions
-- Returns the number of removed versions
--@include roll-outs: version_key
local keep = tonumber(ARGV[1])

-- The versions that running runs name. Only a project with an old version reads its runs.
local running
local function has_runs(app, version)
  if redis.call('EXISTS', K.queue .. app .. '@' .. version) == 1 then return true end
  if not running then
    running = {}
    for _, id in ipairs(redis.call('ZRANGE', K.leases, 0, -1)) do
      local name = redis.call('HGET', K.run .. id, 'v')
      if name then running[name] = true end
    end
  end
  return running[version]
end

-- Returns the app's versions, the last used first, or nothing if none can be too old.
local function by_use(app)
  local found = redis.call('ZRANGE', K.versions .. app, 0, -1, 'WITHSCORES')
  if #found <= 2 * keep then return {} end
  local names, used = {}, {}
  for i = 1, #found, 2 do
    names[#names + 1] = found[i]
    used[found[i]] = tonumber(found[i + 1])
  end
  for _, entry in ipairs(redis.call('LRANGE', K.activations .. app, 0, -1)) do
    local version, time = string.match(entry, '^(%S+) (%d+)')
    if used[version] and tonumber(time) > used[version] then used[version] = tonumber(time) end
  end
  table.sort(names, function(one, other)
    if used[one] == used[other] then return one < other end
    return used[one] > used[other]
  end)
  return names
end

local removed = 0
for _, app in ipairs(redis.call('SMEMBERS', K.deployed)) do
  local active, target = unpack(redis.call('HMGET', K.deployment .. app, 'active', 'target'))
  local counts = {failed = 0, usable = 0}
  for _, version in ipairs(by_use(app)) do
    local state = redis.call('HGET', version_key(app, version), 'state')
    if state ~= 'building' and version ~= target then
      local kind = state == 'failed' and 'failed' or 'usable'
      counts[kind] = counts[kind] + 1
      if counts[kind] > keep and version ~= active and not has_runs(app, version) then
        redis.call('DEL', version_key(app, version), K.buildLog .. app .. ':' .. version)
        redis.call('ZREM', K.versions .. app, version)
        removed = removed + 1
      end
    end
  end
end
return reply(removed)
