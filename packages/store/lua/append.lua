#!lua
-- Appends items to running runs, each batch under explicit numbers, and publishes them, one message per gateway. Of a plain stream
-- only a window is kept (contract 5): the newest bytes, always the newest entry, and what its fastest reader has not taken.
--
-- KEYS  1 the project's prefix
-- ARGV  1 bytes of a plain stream that are kept
--       then per batch: run id, token, number of its first item, how many, kind (s, j, m), the blob,
--       number of the last item that readers took, as the worker was told (- where all items are kept)
-- Returns per batch {code, last number, number that readers took, cancel (1/0)}:
--       ok (also when all of it was there already) | behind (partly there, or beyond the end: resend from last + 1) | lost (fence)
-- Not allowed when memory is short.
--@include clock
--@include bytes
--@include fence
--@include outbox
local LIVE_BYTES = 262144
local window, answers = tonumber(ARGV[1]), {}
-- Entries are removed in steps, not one at every append.
local STEP = math.min(65536, window / 4)

-- Removes entries from the front. Returns the bytes that are left, the number of the last item that is gone, and the size of the entry now
-- at the front where it is known and must stay until there is more behind it: it is not looked at again before that.
local function slide(id, stored, gone, last, taken)
  -- To know an entry's size is to copy it: of large ones no more are looked at than can go, by the size of the one before.
  local count, removed, front = 1, 0, 0
  while count > 0 and stored > window and taken > gone do
    local page, from = redis.call('XRANGE', K.items .. id, '-', '+', 'COUNT', count), gone
    for _, entry in ipairs(page) do
      local upto, size = tonumber(string.match(entry[1], '^%d+')), #entry[2][2] + ENTRY
      if upto > taken or upto >= last then break end
      if stored - size < window then front = size; break end
      stored, gone, removed = stored - size, upto, size
    end
    if gone == from then break end
    redis.call('XTRIM', K.items .. id, 'MINID', string.format('%d', gone + 1))
    count = math.min(8, math.floor((stored - window) / removed))
  end
  return stored, gone, front
end

for i = 2, #ARGV, 7 do
  local id, token, first, count, kind, blob, told = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]
  local key = K.run .. id
  local f
  if told == '-' then
    f = redis.call('HMGET', key, 'state', 'attempt', 'items', 'followers', 'taken', 'cancel', 'size')
  else
    f = redis.call('HMGET', key, 'state', 'attempt', 'items', 'followers', 'taken', 'cancel', 'size', 'stored', 'gone', 'front')
  end
  local code, last, taken = 'ok', tonumber(f[3] or 0), tonumber(f[5] or 0)
  if f[1] ~= 'running' or not is_of(f[2], token) then
    code = 'lost'
  elseif first == last + 1 then
    last = last + count
    -- The id names the last item and how many: the entry that holds a cursor is found by range.
    redis.call('XADD', K.items .. id, string.format('%d-%d', last, count), kind, blob)
    local more = #blob + ENTRY
    local fields, n = {'items', last, 'size', ''}, 4
    if first == 1 then fields[5], fields[6] = 'first', now_text; n = 6 end
    if told ~= '-' then
      local stored, gone, known = tonumber(f[8] or 0) + more, tonumber(f[9] or 0), tonumber(f[10] or 0)
      if stored > window + STEP and stored - known >= window then
        local left, upto, front = slide(id, stored, gone, last, math.max(taken, tonumber(told)))
        if front ~= known then fields[n + 1], fields[n + 2] = 'front', front; n = n + 2 end
        more = more + left - stored
        stored = left
        if upto > gone then fields[n + 1], fields[n + 2] = 'gone', upto; n = n + 2 end
      end
      fields[n + 1], fields[n + 2] = 'stored', stored
    end
    if first == 1 then more = more + STREAM end
    fields[4] = string.format('%d', tonumber(f[7] or 0) + more)
    grown = grown + more
    redis.call('HSET', key, unpack(fields))
    if f[4] then
      if #blob > LIVE_BYTES then
        tell(f[4], 'items', string.format('n %s %s %d\n', id, token, last))
      else
        tell(f[4], 'items', string.format('i %s %s %d %d %s %d\n', id, token, first, count, kind, #blob) .. blob)
      end
    end
  elseif first + count - 1 > last or first < 1 then
    code = 'behind'
  end
  answers[#answers + 1] = {code, last, taken, f[6] and 1 or 0}
end
count_bytes()
send_outbox()
return reply(answers)
