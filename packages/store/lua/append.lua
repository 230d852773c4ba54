#!lua
-- Appends items to running runs, each batch under explicit numbers, and publishes them, one message per gateway.
--
-- KEYS  1 the project's prefix
-- ARGV  per batch: run id, token, number of its first item, how many, kind (s, j, m), the blob
-- Returns per batch {code, last number, number that readers took, cancel (1/0)}:
--       ok (also when all of it was there already) | behind (partly there, or beyond the end: resend from last + 1) | lost (fence)
-- Not allowed when memory is short.
--@include clock
--@include outbox
local LIVE_BYTES = 262144
local answers = {}
for i = 1, #ARGV, 6 do
  local id, token, first, count, kind, blob = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5]
  local key = K.run .. id
  local f = redis.call('HMGET', key, 'state', 'token', 'items', 'followers', 'taken', 'cancel')
  local code, last = 'ok', tonumber(f[3] or 0)
  if f[1] ~= 'running' or f[2] ~= token then
    code = 'lost'
  elseif first == last + 1 then
    last = last + count
    -- The id names the last item and how many: the entry that holds a cursor is found by range.
    redis.call('XADD', K.items .. id, string.format('%d-%d', last, count), kind, blob)
    if first == 1 then redis.call('HSET', key, 'items', last, 'first', now_text) else redis.call('HSET', key, 'items', last) end
    if f[4] then
      if #blob > LIVE_BYTES then
        tell(f[4], true, string.format('n %s %s %d\n', id, token, last))
      else
        tell(f[4], true, string.format('i %s %s %d %d %s %d\n', id, token, first, count, kind, #blob) .. blob)
      end
    end
  elseif first + count - 1 > last or first < 1 then
    code = 'behind'
  end
  answers[#answers + 1] = {code, last, tonumber(f[5] or 0), f[6] and 1 or 0}
end
send_outbox()
return answers
