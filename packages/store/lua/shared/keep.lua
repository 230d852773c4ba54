-- Retention: a run that has ended, its delivery too, is kept for a while. Those that nobody was promised may go before when the store is full.
local keeping = {kept = {}, promises = {}}
local function keep(id, promised, ms)
  local list = promised and keeping.promises or keeping.kept
  list[#list + 1] = string.format('%d', now + ms)
  list[#list + 1] = id
end
local function send_kept()
  if #keeping.kept > 0 then many('ZADD', K.kept, keeping.kept) end
  if #keeping.promises > 0 then many('ZADD', K.promises, keeping.promises) end
end
