-- The fence: the attempt that a run is in stands in its record as `<number> <token> <started (ms), or - while it waits again>`. Who took it
-- shows the token with every write.
local function is_of(attempt, token) return attempt and string.find(attempt, ' ' .. token .. ' ', 1, true) ~= nil end
