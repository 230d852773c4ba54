#!lua flags=allow-oom
-- Reads a run's entries after a cursor and, in the same step, when it reaches the end of an open run, registers the gateway as
-- follower: an entry is either in the answer or live, never lost between and never both.
--
-- KEYS  1 the project's prefix
-- ARGV  1 gateway  2 number of this call (rising per gateway; a lower one does nothing)  3 lease (ms)  4 bytes at most in all
--       (one entry may be over; a run for which nothing is left gets an empty page and asks again)  then per run: id, cursor, what it follows (i items and outcome, o outcome only)
-- Returns {stale (1/0), per run: {} when gone, or {state, token, last number, registered (1/0), entries as {id, kind, blob}, outcome}};
--       outcome is {streamed, ms, ended, status, result, error} of an ended run whose entries are all in this answer, else {}
--@include clock
--@include record
--@include outbox
--@include finish
--@include departure
local gateway, number, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
-- An entry's share of the reply beside its blob: many tiny ones are a large reply, too.
local ENTRY_BYTES = 128
if number < tonumber(redis.call('HGET', K.numbers, gateway) or 0) then return {1, {}} end
redis.call('HSET', K.numbers, gateway, number)
redis.call('ZADD', K.gateways, now + ARGV[3], gateway)

local untouched = true
local function entries_after(id, cursor)
  local entries, from = {}, cursor + 1
  while true do
    local page = redis.call('XRANGE', K.items .. id, string.format('%d', from), '+', 'COUNT', 16)
    for _, entry in ipairs(page) do
      local size = #entry[2][2] + ENTRY_BYTES
      if size > room and (#entries > 0 or not untouched) then return entries, false end
      room, untouched = room - size, false
      entries[#entries + 1] = {entry[1], entry[2][1], entry[2][2]}
      from = tonumber(string.match(entry[1], '^(%d+)')) + 1
    end
    if #page < 16 then return entries, true end
  end
end

local answers = {}
for i = 5, #ARGV, 3 do
  local id, cursor, mode = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local run, answer = load_run(id), {}
  if run then
    local entries, complete = {}, true
    if mode == 'i' and run.items > cursor then entries, complete = entries_after(id, cursor) end
    local registered, outcome = 0, {}
    if complete then
      if ENDED[run.state] then
        local f = redis.call('HMGET', K.run .. id, 'streamed', 'ms', 'ended', 'status', 'result', 'error')
        outcome = {f[1] or '0', f[2], f[3], f[4] or '', f[5] or '', f[6] or ''}
      else
        add_follower(id, run, gateway, mode)
        registered = 1
      end
    end
    answer = {run.state, run.token or '', run.items, registered, entries, outcome}
  end
  answers[#answers + 1] = answer
end
return {0, answers}
