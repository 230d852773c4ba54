-- Forgets a run: deletes its keys, its places in the indexes, and its idempotency key if the key still names the run.
local forgotten = {}
local function forget(id)
  local f = redis.call('HMGET', K.run .. id, 'call', 'claim', 'size')
  if f[2] then free_claim(id, f[2]) end
  redis.call('UNLINK', K.run .. id, K.items .. id, K.log .. id, K.attempts .. id)
  forgotten[#forgotten + 1] = id
  if f[1] then grown = grown - FLAT - tonumber(f[3] or 0) end
end
local function send_forgotten(index)
  many('ZREM', index, forgotten)
  many('ZREM', K.runs, forgotten)
  many('ZREM', K.deliveries, forgotten)
  forgotten = {}
end

-- Makes room: forgets the oldest ended unpromised runs without readers. Returns the freed bytes.
local function evict(wanted, most)
  local before, seen = grown, 0
  while before - grown < wanted and seen < most do
    local ids = redis.call('ZRANGE', K.kept, seen, seen + 63)
    for _, id in ipairs(ids) do
      if before - grown >= wanted then break end
      if tonumber(redis.call('ZSCORE', K.reading, id) or 0) < now then forget(id) end
    end
    seen = seen + #ids
    if #ids < 64 then break end
  end
  if #forgotten > 0 then send_forgotten(K.kept) end
  return before - grown
end
