#!lua flags=allow-oom
-- Begins attempts of runs' deliveries: one at a time each, under a lease.
--
-- KEYS  1 the project's prefix
-- ARGV  1 lease (ms)  then per run: id, the attempt that the job stands for, token of this attempt
-- Returns per run {gone | settled | busy}, {early, ms until it is due}, or {begun, url, sealed secret, refusals, ended (ms), attempts before
--       this round of the schedule, age of the round (ms), when it was parked (ms) and why or empty, the caller's traceparent or empty,
--       how often the run was taken, the envelope's bytes where they are kept, state, items, streamed (1/0), run time, status, result, error, head}
--@include clock
local lease, answers = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 3 do
  local id, attempt, token = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local key = K.run .. id
  local f = redis.call('HMGET', key, 'delivery', 'tries', 'hold', 'held', 'hook', 'secret', 'ended', 'envelope', 'refusals', 'next',
    'round', 'asked', 'parked', 'terms', 'attempt', 'state', 'items', 'streamed', 'ms', 'status', 'result', 'error', 'head')
  local held = tonumber(f[4] or 0)
  local answer
  if not f[1] then
    answer = {'gone'}
  elseif f[1] ~= 'pending' or attempt <= tonumber(f[2] or 0) then
    answer = {'settled'}
  elseif f[3] and f[3] ~= token and held > now and held <= now + 2 * lease then
    -- A lease further ahead than any is given is of a clock that has stepped back since. Whoever parks it now must know that it was woken.
    redis.call('HSET', key, 'missed', 1)
    answer = {'busy'}
  elseif tonumber(f[10] or 0) > now then
    -- The job was added by another machine's clock; the store's decides.
    answer = {'early', f[10] - now}
  else
    redis.call('HSET', key, 'hold', token, 'held', now + lease)
    redis.call('ZADD', K.due, now + lease, id)
    answer = {'begun', f[5], f[6] or '', tonumber(f[9] or 0), tonumber(f[7]), tonumber(f[11] or 0), now - tonumber(f[12] or f[7]),
      f[13] or '', string.match(f[14], '^%S+ %S+ %S+ (%S+)') or '', tonumber(f[15] or 0), f[8] or ''}
    -- What the envelope is made of is not needed where it is made.
    if not f[8] then
      for n = 16, 23 do answer[n - 4] = f[n] or '' end
    end
  end
  answers[#answers + 1] = answer
end
return reply(answers)
