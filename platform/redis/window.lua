-- Counts a request in the window of a key, unless none is left.
-- KEYS: the window, a string with the number of counted requests and the time at which the window ends.
-- ARGV: the limit, and the length of a window.
-- Times are in milliseconds. Returns how many requests are left, or -1 if this one was not counted, and how long it is
-- until the window ends.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local count, ends = 0, now + length

-- A key written by something else is replaced, because it would make every call fail.
if redis.call('TYPE', KEYS[1]).ok == 'string' then
  local counted, ending = string.match(redis.call('GET', KEYS[1]), '^(%d+) (%d+)$')
  if counted and tonumber(ending) > now then
    count, ends = tonumber(counted), tonumber(ending)
  end
end

-- The clock was set back if the window ends later than a new one; the caller turns that into an error.
if count >= limit or ends - now > length then
  return {-1, ends - now}
end
redis.call('SET', KEYS[1], string.format('%d %d', count + 1, ends), 'PX', ends - now)
return {limit - count - 1, ends - now}
