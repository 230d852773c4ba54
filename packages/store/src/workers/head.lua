#!lua
-- Contract 1, "Custom runtimes": writes the heads (status, headers, form) of running runs' answers. A head is written before the run's
-- first item. Publishes the heads, one message per gateway.
--
-- KEYS  1  the project's prefix
-- ARGV  per run: id, token, head (JSON)
-- Returns per run one of these codes:
--       ok     also if the head was there already
--       lost   another attempt holds the run (fence)
--       full   the head does not fit into the project's share
--       again  the same, but a gateway is making room: ask again
-- Redis refuses this script if memory is short.
--@include run: is_of, notify, send_messages
--@include memory: grown, beyond, check_share, count_bytes
local answers = {}
for i = 1, #ARGV, 3 do
  local id, token, head = unpack(ARGV, i, i + 2)
  local key, code = K.run .. id, 'ok'
  local f = redis.call('HMGET', key, 'state', 'attempt', 'followers', 'size')
  if f[1] ~= 'running' or not is_of(f[2], token) then
    code = 'lost'
  elseif redis.call('HEXISTS', key, 'head') == 0 then
    local more = beyond(#head)
    code = check_share(more)
    if code == 'ok' then
      redis.call('HSET', key, 'head', head, 'size', string.format('%d', tonumber(f[4] or 0) + more))
      grown = grown + more
      if f[3] then notify(f[3], 'head', string.format('h %s %s %d\n', id, token, #head) .. head) end
    end
  end
  answers[#answers + 1] = code
end
count_bytes()
send_messages()
return reply(answers)
