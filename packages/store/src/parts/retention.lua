-- Contract 5, "Retention and limits": begins the retention of a run, and forgets runs.
--@include redis: now, send_members
--@include share: grown, FLAT

-- Begins the retention of an ended run whose delivery has ended too. `send_kept` sends the gathered commands. Unpromised runs may go earlier
-- if the store is full.
local keeping = {kept = {}, promises = {}}
-- Most runs of one call share a retention, so its end is formatted once.
local keep_until = {}
local function keep(id, promised, ms)
  local list = promised and keeping.promises or keeping.kept
  local till = keep_until[ms]
  if till == nil then till = string.format('%d', now + ms); keep_until[ms] = till end
  local count = #list
  list[count + 1], list[count + 2] = till, id
end

local function send_kept()
  if #keeping.kept > 0 then send_members('ZADD', K.kept, keeping.kept) end
  if #keeping.promises > 0 then send_members('ZADD', K.promises, keeping.promises) end
end

-- Frees an idempotency key if the key still names this run. Another run may have claimed the key since.
local function free_claim(id, claim)
  local claimed_by = redis.call('GET', K.idempotency .. claim)
  if claimed_by and string.sub(claimed_by, 1, #id + 1) == id .. ' ' then redis.call('DEL', K.idempotency .. claim) end
end

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
  send_members('ZREM', index, forgotten)
  send_members('ZREM', K.runs, forgotten)
  send_members('ZREM', K.deliveries, forgotten)
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
