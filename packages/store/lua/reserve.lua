#!lua
-- Reserves room in the project's share for large results that their workers are about to send: one that does not fit is not sent at all.
--
-- KEYS  1 the project's prefix
-- ARGV  per run: id, token, bytes of its result
-- Returns per run ok (also when asked again) | full | again (room is being made: ask again) | lost (fence)
-- The end of the run, whatever it is, gives back what was reserved (shared/finish).
-- Not allowed when memory is short.
--@include bytes
--@include room
--@include fence
local answers = {}
for i = 1, #ARGV, 3 do
  local id, token, bytes = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local key, code = K.run .. id, 'ok'
  local f = redis.call('HMGET', key, 'state', 'attempt', 'size', 'reserved')
  local more = beyond(bytes) + as_table(bytes) - (f[4] or 0)
  if f[1] ~= 'running' or not is_of(f[2], token) then
    code = 'lost'
  elseif more > 0 then
    code = make_room(more)
    if code == 'ok' then
      redis.call('HSET', key, 'size', string.format('%d', (f[3] or 0) + more), 'reserved', string.format('%d', (f[4] or 0) + more))
      grown = grown + more
    end
  end
  answers[#answers + 1] = code
end
count_bytes()
return reply(answers)
