#!lua flags=allow-oom
-- Begins attempts of runs' deliveries: one at a time each, under a lease.
--
-- KEYS  1 the project's prefix
-- ARGV  1 lease (ms)  then per run: id, the attempt that the job stands for, token of this attempt
-- Returns per run {gone | settled | busy}, or {begun, url, sealed secret, refusals, ended (ms), the envelope's bytes where they are kept,
--       state, items, streamed (1/0), run time, status, result, error}
--@include clock
local lease, answers = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 3 do
  local id, attempt, token = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local key = K.run .. id
  local f = redis.call('HMGET', key, 'delivery', 'tries', 'hold', 'held', 'hook', 'secret', 'ended', 'envelope', 'refusals',
    'state', 'items', 'streamed', 'ms', 'status', 'result', 'error')
  local answer
  if not f[1] then
    answer = {'gone'}
  elseif f[1] ~= 'pending' or attempt <= tonumber(f[2] or 0) then
    answer = {'settled'}
  elseif f[3] and f[3] ~= token and tonumber(f[4]) > now then
    answer = {'busy'}
  else
    redis.call('HSET', key, 'hold', token, 'held', now + lease)
    redis.call('ZADD', K.due, now + lease, id)
    answer = {'begun', f[5], f[6] or '', tonumber(f[9] or 0), tonumber(f[7]), f[8] or ''}
    -- What the envelope is made of is not needed where it is made.
    if not f[8] then
      for n = 10, 16 do answer[n - 3] = f[n] or '' end
    end
  end
  answers[#answers + 1] = answer
end
return answers
