-- Retention: a run that has ended, its delivery too, is kept for a while. Those that nobody was promised may go before when the store is full.
local keeping = {kept = {}, promises = {}}
-- Runs of one call mostly have one retention: its end is written out once.
local keep_until = {}
local function keep(id, promised, ms)
  local list = promised and keeping.promises or keeping.kept
  local till = keep_until[ms]
  if till == nil then till = string.format('%d', now + ms); keep_until[ms] = till end
  local count = #list
  list[count + 1], list[count + 2] = till, id
end
local function send_kept()
  if #keeping.kept > 0 then many('ZADD', K.kept, keeping.kept) end
  if #keeping.promises > 0 then many('ZADD', K.promises, keeping.promises) end
end
