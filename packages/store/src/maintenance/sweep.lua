#!lua flags=allow-oom
-- Contract 5, "Retention and limits": forgets runs after their retention. If room is wanted, it also forgets the oldest ended unpromised
-- runs. A run with a reader stays until the reader has gone.
--
-- KEYS  1  the project's prefix
-- ARGV  1  runs handled at most, per kind
--       2  bytes to which the project's runs must shrink (empty: no limit)
--       3  further time (ms) for which a run with a reader stays
-- Returns {more, bytes, kept, promises}
--       more      1: ask again at once; else 0
--       bytes     bytes that the project's runs take
--       kept      end (ms, as text) of the earliest retention among the unpromised ended runs, or empty
--       promises  end (ms, as text) of the earliest retention among the promised ended runs, or empty
--@include run: send_members
--@include memory: count_bytes, forget, send_forgotten, evict
local most, down_to, read_ms = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local more = 0
for _, index in ipairs({K.kept, K.promises}) do
  local ids, read = redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, most), {}
  for _, id in ipairs(ids) do
    if tonumber(redis.call('ZSCORE', K.reading, id) or 0) > now then
      read[#read + 1] = string.format('%d', now + read_ms)
      read[#read + 1] = id
    else
      forget(id)
    end
  end
  send_forgotten(index)
  send_members('ZADD', index, read)
  if #ids == most then more = 1 end
end
count_bytes()
if down_to ~= '' then
  local wanted = tonumber(redis.call('GET', K.bytes) or 0) - down_to
  local freed = wanted > 0 and evict(wanted, most) or 0
  if freed > 0 and freed < wanted then more = 1 end
  count_bytes()
end
local function oldest(index) return redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2] or '' end
return reply({more, tonumber(redis.call('GET', K.bytes) or 0), oldest(K.kept), oldest(K.promises)})
