-- Frees an idempotency key if the key still names this run. Another run may have claimed the key since.
local function free_claim(id, claim)
  local holder = redis.call('GET', K.idempotency .. claim)
  if holder and string.sub(holder, 1, #id + 1) == id .. ' ' then redis.call('DEL', K.idempotency .. claim) end
end
