-- Messages to gateways, gathered and sent once per gateway and script call. Their text is read by src/runs/live.ts.
local outbox = {}
local function tell(followers, wants_items, message)
  for gateway, mode in string.gmatch(followers, '(%S+):(%a)') do
    if mode == 'i' or not wants_items then
      local box = outbox[gateway]
      if box == nil then box = {}; outbox[gateway] = box end
      box[#box + 1] = message
    end
  end
end
local function send_outbox()
  for gateway, box in pairs(outbox) do redis.call('SPUBLISH', K.toGateway .. gateway, table.concat(box)) end
end
