-- Contract 9: a project's share of the run store, enforced wherever bytes are written. Every second gateways write `<bytes> <1|0>` (K.share):
-- the share without the reserve of the runs under way, and whether unpromised ended runs may make room. Only gateways may read which
-- runs those are, so a write that needs room leaves a request (K.wanted).
-- Each run under way has RESERVED bytes in reserve: so much counts an outcome of OUTCOME bytes, which is always stored.
local OUTCOME, RESERVED = 512, 640
local used, share, evictable

-- Returns 'ok', 'full', or 'again' if a gateway is to make room first.
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
