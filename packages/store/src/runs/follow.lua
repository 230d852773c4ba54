#!lua flags=allow-oom
-- Contract 5, "Resume: `GET /runs/{run_id}/stream`": reads a run's entries after a cursor.
-- Registers the gateway as a follower of an open run in the same step. If the page reaches the end, each later entry arrives live:
-- no entry is lost or doubled between page and live messages.
--
-- KEYS  1  the project's prefix
-- ARGV  1  gateway
--       2  number of this call, rising per gateway. A lower number does nothing.
--       3  lease (ms)
--       4  bytes of the whole reply, at most. One entry or one result may exceed the limit. Without bytes left, a run gets an empty page and asks again.
--       runs  per run: id, cursor, what the gateway follows (o, i, l, f: see parts/run),
--             number of the last log line it has (- to receive only future lines)
-- Returns {stale (1/0), answers}. There is one answer per run:
--       gone      {}
--       known     {state, token, last number, complete, entries, outcome, started (ms or empty), number of the last log line, log parts, head}
--       complete  1 if everything after this page arrives live, else 0
--       entries   {id, kind, blob} each
--       log parts  in the format of workers/log.lua
--       head      head of the answer for a reader without items, or empty
--       outcome   {streamed, ms, ended, status, result, error, head, bytes of a result that is not in this answer or 0} of an ended run,
--                 if all entries and the result fit into this answer; else {}
--@include run: ENDED, load_run, add_follower
local gateway, number, lease, bytes_left = unpack(ARGV, 1, 4)
number, lease, bytes_left = tonumber(number), tonumber(lease), tonumber(bytes_left)
-- Bytes of an entry in the reply beside its blob. They count, because many tiny entries make a large reply.
local ENTRY_BYTES = 128
if number < tonumber(redis.call('HGET', K.numbers, gateway) or 0) then return reply({1, {}}) end
redis.call('HSET', K.numbers, gateway, number)
redis.call('ZADD', K.gateways, now + lease, gateway)

-- The bytes that one reader takes at once: its socket buffer, see the gateway's live-response. Further bytes would be read again later.
local READER_BYTES = 131072

-- A larger result is read in pieces by runs/result.lua.
local RESULT_BYTES = 65536

local untouched = true
local function entries_after(id, cursor)
  local entries, from, share = {}, cursor + 1, READER_BYTES
  while true do
    local page = redis.call('XRANGE', K.items .. id, string.format('%d', from), '+', 'COUNT', 4)
    for _, entry in ipairs(page) do
      local size = #entry[2][2] + ENTRY_BYTES
      if #entries > 0 and size > share or size > bytes_left and (#entries > 0 or not untouched) then return entries, false end
      bytes_left, share, untouched = bytes_left - size, share - size, false
      entries[#entries + 1] = {entry[1], entry[2][1], entry[2][2]}
      from = tonumber(string.match(entry[1], '^(%d+)')) + 1
    end
    if #page < 4 then return entries, true end
  end
end

local function log_after(id, line)
  local parts = {}
  for _, part in ipairs(redis.call('LRANGE', K.log .. id, 0, -1)) do
    local first, count = string.match(part, '^(%d+) (%d+)')
    if first + count - 1 > line then parts[#parts + 1] = part; bytes_left = bytes_left - #part end
  end
  return parts
end

local answers = {}
for i = 5, #ARGV, 4 do
  local id, cursor, mode, line = unpack(ARGV, i, i + 3)
  cursor = tonumber(cursor)
  local run, answer = load_run(id), {}
  if run then
    local wants_items, wants_log = mode == 'i' or mode == 'f', mode == 'l' or mode == 'f'
    local entries, complete = {}, true
    if wants_items and run.items > cursor then entries, complete = entries_after(id, cursor) end
    local lines, parts, started = 0, {}, ''
    if wants_log then
      lines = tonumber(redis.call('HGET', K.run .. id, 'lines') or 0)
      if run.started ~= '-' then started = run.started or '' end
      if line ~= '-' and lines > tonumber(line) then parts = log_after(id, tonumber(line)) end
    end
    local head = mode ~= 'l' and cursor == 0 and redis.call('HGET', K.run .. id, 'head') or ''
    local outcome = {}
    if not ENDED[run.state] then
      add_follower(id, run, gateway, mode)
    elseif wants_items and run.items > 0 or wants_log then
      -- The reader may be slow. The run is not forgotten until the reader has finished or left.
      add_follower(id, run, gateway, mode)
      redis.call('ZADD', K.reading, now + lease, id)
    end
    local size = ENDED[run.state] and complete and redis.call('HSTRLEN', K.run .. id, 'body') or 0
    local large = size > RESULT_BYTES and size or 0
    if large > 0 then size = 0 end
    if size > 0 and size > bytes_left and not untouched then complete = false end
    if ENDED[run.state] and complete then
      bytes_left, untouched = bytes_left - size, untouched and size == 0
      local f = redis.call('HMGET', K.run .. id, 'streamed', 'ms', 'ended', 'status', 'error', 'head')
      local result = size > 0 and redis.call('HGET', K.run .. id, 'body') or ''
      outcome = {f[1] or '0', f[2], f[3], f[4] or '', result, f[5] or '', f[6] or '', large}
    end
    answer = {run.state, run.token or '', run.items, complete and not ENDED[run.state] and 1 or 0, entries, outcome, started, lines, parts, head}
  end
  answers[#answers + 1] = answer
end
return reply({0, answers})
