#!lua
-- Contract 5, "Logs: `GET /runs/{run_id}/logs`": writes lines to the logs of running runs. A run that ended under the same attempt
-- still gets its function's last lines. A log is bounded in bytes and by the project's share. The oldest lines are dropped first.
-- Lines keep their numbers, so the dropped lines can be counted.
--
-- KEYS  1  the project's prefix
-- ARGV  1  bytes of a run's log that are kept
--       parts  per part: run id, token, number of this part (rising within the attempt), number of lines,
--              number of lines dropped before them, lines (JSON)
-- Returns per part ok (also when asked again) | lost (another attempt holds the run: fence)
-- A part is kept as `<number of its first line> <number of lines>`, a newline and the lines.
-- Redis refuses this script if memory is short.
--@include run: is_of, notify, send_messages
--@include memory: grown, ENTRY, LIST, check_share, count_bytes
local most, answers = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 6 do
  local id, token, number, count, dropped, text = unpack(ARGV, i, i + 5)
  number, count, dropped = tonumber(number), tonumber(count), tonumber(dropped)
  local key, log = K.run .. id, K.log .. id
  local f = redis.call('HMGET', key, 'attempt', 'logged', 'lines', 'followers', 'size')
  local code = 'ok'
  if not is_of(f[1], token) then
    code = 'lost'
  else
    local by, last_number, kept = string.match(f[2] or '- 0 0', '^(%S+) (%d+) (%d+)$')
    if by ~= token or number > tonumber(last_number) then
      local first = tonumber(f[3] or 0) + dropped + 1
      local part = first .. ' ' .. count .. '\n' .. text
      redis.call('RPUSH', log, part)
      local bytes = kept + #part + ENTRY
      while bytes > most and redis.call('LLEN', log) > 1 do bytes = bytes - #redis.call('LPOP', log) - ENTRY end
      while bytes > 0 and check_share(bytes - kept) ~= 'ok' do bytes = bytes - #redis.call('LPOP', log) - ENTRY end
      local more = bytes - kept + (f[2] and 0 or LIST)
      grown = grown + more
      redis.call('HSET', key, 'logged', string.format('%s %d %d', token, number, bytes), 'lines', first + count - 1,
        'size', string.format('%d', tonumber(f[5] or 0) + more))
      if f[4] then notify(f[4], 'log', string.format('l %s %s %d %d %d\n', id, token, first, count, #text) .. text) end
    end
  end
  answers[#answers + 1] = code
end
count_bytes()
send_messages()
return reply(answers)
