-- The followers of a run: `<gateway>:<mode>` for each in its record. The id of an open run is also in each gateway's `following` set.
-- Readers of an ended run are in its record too, and the run is in `reading`.

-- Adds a gateway to the followers, or widens its mode (see shared/outbox): items and log together make all.
local WIDER = {oi = 'i', ol = 'l', of = 'f', il = 'f', ['if'] = 'f', li = 'f', lf = 'f'}
local function add_follower(id, run, gateway, mode)
  local others, known = {}, nil
  for other, other_mode in string.gmatch(run.followers or '', '(%S+):(%a)') do
    if other == gateway then known = other_mode else others[#others + 1] = other .. ':' .. other_mode end
  end
  if known == mode then return end
  local wider = known and WIDER[known .. mode] or mode
  if known and WIDER[mode .. known] == known then return end
  others[#others + 1] = gateway .. ':' .. wider
  run.followers = table.concat(others, ' ')
  redis.call('HSET', K.run .. id, 'followers', run.followers)
  if ENDED[run.state] then return end
  if known == nil then redis.call('SADD', K.following .. gateway, id) end
  if run.absent and run.absent ~= '0' then redis.call('ZREM', K.absent, id) end
end
