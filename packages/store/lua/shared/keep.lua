-- Contract 5, "Retention and limits": begins the retention of an ended run whose delivery has ended too. Unpromised runs may go earlier if
-- the store is full.
local keeping = {kept = {}, promises = {}}
-- Most runs of one call share a retention, so its end is formatted once.
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
