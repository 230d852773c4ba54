-- One command for many members: a call of its own for each costs more than the command. In portions, for Lua passes only so many.
local function many(command, key, members)
  for from = 1, #members, 1000 do redis.call(command, key, unpack(members, from, math.min(from + 999, #members))) end
end
