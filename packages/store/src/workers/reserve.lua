#!lua
-- Contract 9: reserves room in the project's share for large results before workers send them. A result that does not fit is not sent.
--
-- KEYS  1  the project's prefix
-- ARGV  per run: id, token, bytes of its result
-- Returns per run one of these codes:
--       ok     also when asked again
--       full   the result does not fit
--       again  the same, but a gateway is making room: ask again
--       lost   another attempt holds the run (fence)
-- Every end of the run gives the reservation back (parts/ending).
-- Redis refuses this script if memory is short.
--@include run: is_of
--@include memory: grown, beyond, as_table, check_share, count_bytes
local answers = {}
for i = 1, #ARGV, 3 do
  local id, token, bytes = unpack(ARGV, i, i + 2)
  bytes = tonumber(bytes)
  local key, code = K.run .. id, 'ok'
  local f = redis.call('HMGET', key, 'state', 'attempt', 'size', 'reserved')
  local more = beyond(bytes) + as_table(bytes) - (f[4] or 0)
  if f[1] ~= 'running' or not is_of(f[2], token) then
    code = 'lost'
  elseif more > 0 then
    code = check_share(more)
    if code == 'ok' then
      redis.call('HSET', key, 'size', string.format('%d', (f[3] or 0) + more), 'reserved', string.format('%d', (f[4] or 0) + more))
      grown = grown + more
    end
  end
  answers[#answers + 1] = code
end
count_bytes()
return reply(answers)
