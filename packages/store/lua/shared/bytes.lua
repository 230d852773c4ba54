-- Counts the memory of a project's runs as runs grow and go: a flat rate for each run, and its large fields by their length.
-- A run's record holds what it takes beyond the flat rate (`size`), so that the same is taken off when it is forgotten.
-- The figures follow MEMORY USAGE (src/journeys/counted.test.ts). jemalloc rounds an allocation up to one of four sizes between powers of two.
local FLAT, STREAM, LIST = 530, 4500, 260
-- The memory of an idempotency key, and of a webhook without its URL and its secret.
local CLAIM, HOOK = 250, 530
-- Beside its bytes, an entry of a window, of a log.
local ENTRY = 64
-- A field over `hash-max-listpack-value` makes the record a hash table, for good.
local LISTPACK, TABLE = 4096, 400
-- From this size on a result is reserved before it is sent (lua/reserve).
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
local function as_table(length) return length > LISTPACK and TABLE or 0 end
-- An entry of a stream: a node of the stream holds 4,096 bytes, so at most one or two large ones. A larger entry is a node of its own.
local function item_bytes(length)
  if length > 2030 then return allocated(length + 60) + 100 end
  if length > 1350 then return allocated(2 * length + 60) / 2 + 50 end
  return length + 14
end
-- An attempt of a delivery: a large one is an allocation of its own.
local function attempt_bytes(length) return length > 2000 and allocated(length + 16) + 32 or length + ENTRY end
local function count_bytes()
  if grown ~= 0 then redis.call('INCRBY', K.bytes, string.format('%d', grown)); grown = 0 end
end
