#!lua
-- Contract 3: appends items to running runs and publishes them, one message per gateway. Each batch carries explicit item numbers.
-- Of a plain stream the store keeps only a window (Contract 5, "Retention and limits"): the newest bytes, always the newest entry, and
-- every item that the fastest reader has not taken.
--
-- KEYS  1  the project's prefix
-- ARGV  1  bytes of a plain stream that are kept
--       batches  per batch: run id, token, number of the first item, number of items, kind (s, j, m), blob,
--                number of the last taken item that the worker knows of (- if all items are kept)
-- Returns per batch {code, last number, number of the last item that readers took, cancel (1/0)}. The code is one of these:
--       ok      also if the whole batch was there already
--       behind  part of the batch is there, or the batch begins beyond the end: resend from last + 1
--       lost    another attempt holds the run (fence)
--       full    the batch does not fit into the project's share: nothing was written
--       again   the same, but a gateway is making room: ask again
-- Redis refuses this script if memory is short.
--@include run: is_of, notify, send_messages
--@include memory: grown, item_bytes, STREAM, ENTRY, check_share, count_bytes
local LIVE_BYTES = 262144
local window, answers = tonumber(ARGV[1]), {}
-- Entries are removed in steps, not one at every append.
local STEP = math.min(65536, window / 4)

-- Removes entries from the front. Returns the remaining bytes, the number of the last removed item, the size of the first entry, and
-- the freed memory. The size is 0 if it is unknown. An entry of known size stays until a window of bytes stands behind the entry.
local function slide(id, stored, gone, last, taken)
  -- Reading an entry's size copies the entry. So each page has at most as many entries as can go, by the size of the previous entry.
  local count, removed, front, freed = 1, 0, 0, 0
  while count > 0 and stored > window and taken > gone do
    local page, from = redis.call('XRANGE', K.items .. id, '-', '+', 'COUNT', count), gone
    for _, entry in ipairs(page) do
      local upto, size = tonumber(string.match(entry[1], '^%d+')), #entry[2][2] + ENTRY
      if upto > taken or upto >= last then break end
      if stored - size < window then front = size; break end
      stored, gone, removed, freed = stored - size, upto, size, freed + item_bytes(#entry[2][2])
    end
    if gone == from then break end
    redis.call('XTRIM', K.items .. id, 'MINID', string.format('%d', gone + 1))
    count = math.min(8, math.floor((stored - window) / removed))
  end
  return stored, gone, front, freed
end

for i = 2, #ARGV, 7 do
  local id, token, first, count, kind, blob, position = unpack(ARGV, i, i + 6)
  first, count = tonumber(first), tonumber(count)
  local key = K.run .. id
  local f
  if position == '-' then
    f = redis.call('HMGET', key, 'state', 'attempt', 'items', 'followers', 'taken', 'cancel', 'size')
  else
    f = redis.call('HMGET', key, 'state', 'attempt', 'items', 'followers', 'taken', 'cancel', 'size', 'stored', 'gone', 'front')
  end
  local code, last, taken = 'ok', tonumber(f[3] or 0), tonumber(f[5] or 0)
  if f[1] ~= 'running' or not is_of(f[2], token) then
    code = 'lost'
  elseif first == last + 1 then
    local entry = item_bytes(#blob)
    if first == 1 then entry = entry + STREAM end
    local more, fields, n = entry, {'size', ''}, 2
    if position ~= '-' then
      local stored, gone, known = tonumber(f[8] or 0) + #blob + ENTRY, tonumber(f[9] or 0), tonumber(f[10] or 0)
      -- The window slides first. A stream that has filled its window takes no further bytes of the share.
      if stored > window + STEP and stored - known >= window then
        local left, upto, front, freed = slide(id, stored, gone, last + count, math.max(taken, tonumber(position)))
        if front ~= known then fields[n + 1], fields[n + 2] = 'front', front; n = n + 2 end
        more = more - freed
        stored = left
        if upto > gone then fields[n + 1], fields[n + 2] = 'gone', upto; n = n + 2 end
      end
      fields[n + 1], fields[n + 2] = 'stored', stored
      n = n + 2
    end
    code = check_share(more)
    if code == 'ok' then
      last = last + count
      -- The entry's id holds the number of its last item and its number of items. A range query finds the entry of a cursor.
      redis.call('XADD', K.items .. id, string.format('%d-%d', last, count), kind, blob)
      fields[n + 1], fields[n + 2] = 'items', last
      if first == 1 then fields[n + 3], fields[n + 4] = 'first', now_text end
    else
      more = more - entry
      if position ~= '-' then fields[n] = fields[n] - #blob - ENTRY end
    end
    if code == 'ok' or more ~= 0 then
      fields[2] = string.format('%d', tonumber(f[7] or 0) + more)
      grown = grown + more
      redis.call('HSET', key, unpack(fields))
    end
    if code == 'ok' and f[4] then
      if #blob > LIVE_BYTES then
        notify(f[4], 'items', string.format('n %s %s %d\n', id, token, last))
      else
        notify(f[4], 'items', string.format('i %s %s %d %d %s %d\n', id, token, first, count, kind, #blob) .. blob)
      end
    end
  elseif first + count - 1 > last or first < 1 then
    code = 'behind'
  end
  answers[#answers + 1] = {code, last, taken, f[6] and 1 or 0}
end
count_bytes()
send_messages()
return reply(answers)
