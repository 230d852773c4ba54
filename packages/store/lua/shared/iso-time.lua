-- Formats a time for an envelope (RFC 3339, UTC, milliseconds). Most deliveries of one call share a second, so its text is built once.
local iso_second, iso_text
local function iso_time(ms)
  local second = math.floor(ms / 1000)
  if second ~= iso_second then
    -- The civil date of a day (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"). Years begin in March, and eras have 400 years.
    local day, time = math.floor(second / 86400) + 719468, second % 86400
    local era = math.floor(day / 146097)
    local of_era = day - era * 146097
    local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
    local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
    local month = math.floor((5 * of_year + 2) / 153)
    local of_month = of_year - math.floor((153 * month + 2) / 5) + 1
    month = month < 10 and month + 3 or month - 9
    iso_second = second
    iso_text = string.format('%04d-%02d-%02dT%02d:%02d:%02d.', year + era * 400 + (month <= 2 and 1 or 0), month, of_month,
      math.floor(time / 3600), math.floor(time / 60) % 60, time % 60)
  end
  return iso_text .. string.format('%03dZ', ms % 1000)
end
