-- Contract 5, "Retention and limits", and contract 9: the memory of a project's runs. Counts the memory, enforces the project's share of the
-- run store at every write, begins the retention of a run, and forgets runs.
--@include run: send_members

-- A run counts a flat rate, and its large fields by their length. A run's record holds the memory beyond the flat rate (`size`). The same number is subtracted when the run is forgotten.
-- The figures follow MEMORY USAGE (src/journeys/counted.test.ts). jemalloc rounds an allocation up to the next of four sizes between powers of two.

local FLAT, STREAM, LIST = 530, 4500, 260
-- The memory of an idempotency key, and of a webhook without its URL and its secret.
local CLAIM, HOOK = 250, 530
-- Overhead of an entry of a window or a log, beside its bytes.
local ENTRY = 64
-- A field over `hash-max-listpack-value` turns the record into a hash table. Redis never turns it back.
local LISTPACK, TABLE = 4096, 460
-- A result of this size or more is reserved before it is sent (workers/reserve.lua).
local LARGE = 262144
local grown = 0
local function allocated(length)
  local _, power = math.frexp(length - 1)
  local step = 2 ^ (power - 3)
  return math.ceil(length / step) * step
end
-- Returns the memory of a record's field beyond the flat rate.
local function beyond(length)
  if length <= 256 then return 0 end
  if length <= LISTPACK then return allocated(length + 150) - 160 end
  return allocated(length + 10)
end
-- Returns the memory of parameters that stay beside the outcome. `beyond` has counted large parameters at the accept.
local function kept_bytes(length) return length > 256 and 30 or 30 + length end
local function as_table(length) return length > LISTPACK and TABLE or 0 end
-- Returns the memory of a stream's entry. A node of the stream holds 4,096 bytes, so at most one or two large entries. A larger entry is a
-- node by itself.
local function item_bytes(length)
  if length > 2030 then return allocated(length + 60) + 100 end
  if length > 1350 then return allocated(2 * length + 60) / 2 + 50 end
  return length + 14
end
-- Returns the memory of a delivery's attempt. A large attempt has an allocation for itself.
local function attempt_bytes(length) return length > 2000 and allocated(length + 16) + 32 or length + ENTRY end
local function count_bytes()
  if grown ~= 0 then redis.call('INCRBY', K.bytes, string.format('%d', grown)); grown = 0 end
end

-- Every second gateways write `<bytes> <1|0>` (K.share): the share without the reserve of the runs under way, and 1 if unpromised ended
-- runs may make room. Only gateways may read the list of these runs, so a write that needs room leaves a request (K.wanted).
-- Each run under way has RESERVED bytes in reserve. This is the cost of an outcome of OUTCOME bytes, which is always stored.
local OUTCOME, RESERVED = 512, 640
local used, share, evictable

-- Returns 'ok', 'full', or 'again' if a gateway must make room first.
local function check_share(more)
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
