-- Sends one command for many members, because a separate call for each member costs more than the command. Lua bounds the number of
-- arguments, so the members are sent in portions.
local function many(command, key, members)
  for from = 1, #members, 1000 do redis.call(command, key, unpack(members, from, math.min(from + 999, #members))) end
end
