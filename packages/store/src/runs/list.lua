#!lua flags=allow-oom
-- Contract 5, "List: `GET /runs`": lists runs by their records, newest first, from a place in the order of their acceptance.
-- Removes index entries of runs that have no record.
--
-- KEYS  1  the project's prefix
-- ARGV  1  place (µs; empty is the newest)
--       2  the run that was last at that place (empty: none)
--       3  records read at most
--       4  runs wanted
--       5-7  app, function, state (empty: any)
--       8  webhook: none | any | waiting | pending | delivered | failed (empty: with or without a webhook)
--       9  earliest acceptance (µs, or -inf)
--       fields  names of the wanted fields
-- Returns {records read, place and id of the last read record (empty at the end), per run {id, the fields}}
--@include run: target_of, read_call
local place, last, most, wanted, app, fn, state, webhook, since = unpack(ARGV, 1, 9)
most, wanted = tonumber(most), tonumber(wanted)
local runs, gone, read, ended = {}, {}, 0, false
local function has_webhook(call, delivery)
  if webhook == '' then return true end
  if not read_call(call).hook then return webhook == 'none' end
  return webhook == 'any' or webhook == (delivery or 'waiting')
end
-- Places are almost unique. Eight further entries are read, because some entries before `last` may share its place.
local found = redis.call('ZRANGE', K.runs, place == '' and '+inf' or place, since, 'BYSCORE', 'REV', 'LIMIT', 0, most + 8, 'WITHSCORES')
for i = 1, #found, 2 do
  local id, at = found[i], string.format('%d', found[i + 1])
  if at ~= place or id < last then
    if read == most or #runs == wanted then ended = true; break end
    read = read + 1
    place, last = at, id
    local f = redis.call('HMGET', K.run .. id, 'state', 'call', 'delivery')
    -- A record without a call was written by an earlier version. It stays until its retention ends.
    local its_app, its_fn = target_of(f[2] or '')
    if not f[1] then
      gone[#gone + 1] = id
    elseif its_app and (state == '' or f[1] == state) and (app == '' or its_app == app) and (fn == '' or its_fn == fn)
      and has_webhook(f[2], f[3]) then
      runs[#runs + 1] = {id, unpack(redis.call('HMGET', K.run .. id, unpack(ARGV, 10)))}
    end
  end
end
if #gone > 0 then redis.call('ZREM', K.runs, unpack(gone)) end
-- If the index gave as many entries as asked for, further entries may follow.
if not ended and #found < (most + 8) * 2 then place, last = '', '' end
return reply({read, place, last, runs})
