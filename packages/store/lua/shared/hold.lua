-- An attempt under way holds its delivery: `<token> <until (ms)> <lease (ms)>`. A hold that ends later than twice its lease from now comes
-- from a clock that has stepped back since. Such a hold does not count.
local function holder(hold)
  if not hold then return nil, false end
  local token, upto, lease = string.match(hold, '^(%S+) (%d+) (%d+)$')
  upto, lease = tonumber(upto), tonumber(lease)
  return token, upto > now and upto <= now + 2 * lease
end
