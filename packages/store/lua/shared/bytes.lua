-- What the project's runs take in Redis, counted as they grow and go: a flat rate for each, and what is large by its length.
-- A run's record holds what it takes beyond the flat rate (`size`), so that the same is taken off when it is forgotten.
local FLAT, ENTRY, STREAM = 700, 64, 4600
-- A field over `hash-max-listpack-value` makes the record a hash table, for good.
local LISTPACK, TABLE = 4096, 400
local grown = 0
local function beyond(length) return length > 256 and length or 0 end
local function as_table(length) return length > LISTPACK and TABLE or 0 end
local function count_bytes()
  if grown ~= 0 then redis.call('INCRBY', K.bytes, string.format('%d', grown)); grown = 0 end
end
