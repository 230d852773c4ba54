-- An attempt under way holds its delivery: `<token> <until (ms)> <lease (ms)>`. What ends further ahead than twice its lease is of a clock that
-- has stepped back since, and holds nothing.
local function holder(hold)
  if not hold then return nil, false end
  local token, upto, lease = string.match(hold, '^(%S+) (%d+) (%d+)$')
  upto, lease = tonumber(upto), tonumber(lease)
  return token, upto > now and upto <= now + 2 * lease
end
