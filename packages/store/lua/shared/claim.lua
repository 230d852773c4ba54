-- An idempotency key is freed only if it still names that run: another may have claimed it since.
local function free_claim(id, claim)
  local holder = redis.call('GET', K.idempotency .. claim)
  if holder and string.sub(holder, 1, #id + 1) == id .. ' ' then redis.call('DEL', K.idempotency .. claim) end
end
