#!lua flags=allow-oom
-- Forgets runs that are past their retention and, where room is wanted, the oldest ended ones that nobody was promised. A run that
-- somebody reads stays until that reader has gone.
--
-- KEYS  1 the project's prefix
-- ARGV  1 runs handled at most per kind  2 bytes to which the project's runs are to be brought down (empty: no matter)
--       3 how much longer a run that is read stays (ms)
-- Returns {more (1/0: ask again at once), bytes that the project's runs take, and, as text or empty where there is none, when the oldest run
--       that may go for room and when the oldest promised run are past their retention (ms)}
--@include clock
--@include bytes
--@include many
--@include claim
--@include forget
local most, more = tonumber(ARGV[1]), 0
for _, index in ipairs({K.kept, K.promises}) do
  local ids, read = redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, most), {}
  for _, id in ipairs(ids) do
    if tonumber(redis.call('ZSCORE', K.reading, id) or 0) > now then
      read[#read + 1] = string.format('%d', now + ARGV[3])
      read[#read + 1] = id
    else
      forget(id)
    end
  end
  send_forgotten(index)
  many('ZADD', index, read)
  if #ids == most then more = 1 end
end
count_bytes()
if ARGV[2] ~= '' then
  local wanted = tonumber(redis.call('GET', K.bytes) or 0) - ARGV[2]
  local freed = wanted > 0 and evict(wanted, most) or 0
  if freed > 0 and freed < wanted then more = 1 end
  count_bytes()
end
local function oldest(index) return redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2] or '' end
return reply({more, tonumber(redis.call('GET', K.bytes) or 0), oldest(K.kept), oldest(K.promises)})
