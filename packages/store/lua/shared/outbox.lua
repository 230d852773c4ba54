-- Gathers messages to gateways and sends them once per gateway and script call. src/runs/live.ts parses them.
-- A follower's mode: o the run's outcome, i also its items, l also its log, f all of it and its start.
local HEAR = {items = 'if', log = 'lf', start = 'f'}
local outbox = {}
local function post(gateway, message)
  local box = outbox[gateway]
  if box == nil then box = {}; outbox[gateway] = box end
  box[#box + 1] = message
end
local function tell(followers, what, message)
  local hear = HEAR[what]
  for gateway, mode in string.gmatch(followers, '(%S+):(%a)') do
    if string.find(hear, mode, 1, true) then post(gateway, message) end
  end
end
local function send_outbox()
  for gateway, box in pairs(outbox) do redis.call('SPUBLISH', K.toGateway .. gateway, table.concat(box)) end
end
