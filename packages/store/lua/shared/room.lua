-- Contract 9: a project's share of the run store, enforced wherever bytes are written. Gateways write the share every second (K.share).
-- Each run under way has RESERVED bytes of the share to itself: so much counts an outcome of OUTCOME bytes, which is always stored.
local OUTCOME, RESERVED = 512, 640
-- Runs that one write may forget to make room. Redis serves others in between.
local EVICTED = 256
local used, share, under_way
-- Runs that this script has accepted: the index does not list them yet.
local begun = 0

local function reserved()
  if under_way == nil then
    under_way = redis.call('ZCARD', K.runs) - redis.call('ZCARD', K.kept) - redis.call('ZCARD', K.promises)
  end
  return RESERVED * (math.max(0, under_way) + begun)
end

-- Makes room for `more` bytes: if they exceed the share, the oldest unpromised ended runs are forgotten.
-- Returns 'ok', 'again' (runs were forgotten, and more of them may go) or 'full'.
local function make_room(more, most)
  if more <= 0 then return 'ok' end
  if used == nil then
    local f = redis.call('MGET', K.bytes, K.share)
    used, share = tonumber(f[1] or 0), tonumber(f[2] or math.huge)
  end
  local missing = used + grown + more - share
  -- Counting the runs under way takes three commands: far from the share, their reserve does not matter.
  if missing > -share / 2 then missing = missing + reserved() end
  if missing <= 0 then return 'ok' end
  local freed, none_left = evict(missing, most or EVICTED)
  if freed >= missing then return 'ok' end
  return (none_left or freed == 0) and 'full' or 'again'
end
