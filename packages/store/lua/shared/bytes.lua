-- Counts the memory of a project's runs while runs grow and go: a flat rate for each run, and its large fields by their length.
-- A run's record holds the memory beyond the flat rate (`size`). The same number is subtracted when the run is forgotten.
-- The figures follow MEMORY USAGE (src/journeys/counted.test.ts). jemalloc rounds an allocation up to the next of four sizes between powers of two.
local FLAT, STREAM, LIST = 530, 4500, 260
-- The memory of an idempotency key, and of a webhook without its URL and its secret.
local CLAIM, HOOK = 250, 530
-- Overhead of an entry of a window or a log, beside its bytes.
local ENTRY = 64
-- A field over `hash-max-listpack-value` turns the record into a hash table. Redis never turns it back.
local LISTPACK, TABLE = 4096, 460
-- A result of this size or more is reserved before it is sent (lua/reserve).
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
