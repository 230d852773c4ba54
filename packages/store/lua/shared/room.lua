-- Contract 9: enforces a project's share of the run store at every write. Every second gateways write `<bytes> <1|0>` (K.share):
-- the share without the reserve of the runs under way, and 1 if unpromised ended runs may make room. Only gateways may read the list of
-- these runs, so a write that needs room leaves a request (K.wanted).
-- Each run under way has RESERVED bytes in reserve. This is the cost of an outcome of OUTCOME bytes, which is always stored.
local OUTCOME, RESERVED = 512, 640
local used, share, evictable

-- Returns 'ok', 'full', or 'again' if a gateway must make room first.
local function make_room(more)
  if more <= 0 then return 'ok' end
  if used == nil then
    local f = redis.call('MGET', K.bytes, K.share)
    local bytes, flag = string.match(f[2] or '', '^(%d+) (%d)$')
    used, share, evictable = tonumber(f[1] or 0), tonumber(bytes or math.huge), flag == '1'
  end
  local missing = used + grown + more - share
  if missing <= 0 then return 'ok' end
  if not evictable then return 'full' end
  redis.call('SET', K.wanted, string.format('%d', more))
  return 'again'
end
