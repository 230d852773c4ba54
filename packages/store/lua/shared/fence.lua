-- The fence. A run's record holds its attempt as `<number> <token> <started (ms), or - after a requeue>`. The worker that took the run sends
-- the token with every write.
local function is_of(attempt, token) return attempt and string.find(attempt, ' ' .. token .. ' ', 1, true) ~= nil end
