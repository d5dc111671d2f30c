-- Counts an attempt under three keys, or under none of them if one has to wait.
-- KEYS: a hash with each key's count and the time until which it has to wait, and a sorted set of when each is
-- forgotten.
-- ARGV: how long keys are remembered, the maximum number of keys, the count of the third key from which the delays of
-- the second key apply to it too, then for each key its name, its number of delays, and the delays.
-- The first delay follows the first attempt, the second delay the second attempt, and so on; the last delay repeats.
-- The delays of the first key apply to it. Those of the second key, selected by its count, apply to the third, which
-- has the longer of these and its own.
-- Times are in milliseconds. Returns how long it is until the attempt may be made, or 0 if it was counted.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local memory, most, shared = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

-- A key of another type, written by something else, would make every call fail.
for k, kind in ipairs({'hash', 'zset'}) do
  local found = redis.call('TYPE', KEYS[k]).ok
  if found ~= kind and found ~= 'none' then
    redis.call('DEL', KEYS[1], KEYS[2])
  end
end

local names, delays, counts, wait, at = {}, {}, {}, 0, 4
for k = 1, 3 do
  names[k], delays[k], counts[k] = ARGV[at], {}, 0
  for i = 1, tonumber(ARGV[at + 1]) do
    delays[k][i] = tonumber(ARGV[at + 1 + i])
  end
  at = at + 2 + #delays[k]

  local ends = redis.call('ZSCORE', KEYS[2], names[k])
  local kept = ends and tonumber(ends) > now and redis.call('HGET', KEYS[1], names[k])
  if kept then
    local count, ready = string.match(kept, '(%d+) (%d+)')
    counts[k], wait = tonumber(count), math.max(wait, tonumber(ready) - now)
  end
end
if wait > 0 then
  return wait
end

local function after(list, n)
  return list[math.min(n, #list)] or 0
end
for k = 1, 3 do
  counts[k] = counts[k] + 1
end
local own = {after(delays[1], counts[1]), 0, after(delays[3], counts[3])}
if counts[3] >= shared then
  own[3] = math.max(own[3], after(delays[2], counts[2]))
end
for k = 1, 3 do
  redis.call('HSET', KEYS[1], names[k], string.format('%d %d', counts[k], now + own[k]))
  redis.call('ZADD', KEYS[2], now + own[k] + memory, names[k])
end

-- Forgets keys whose time is over and, if there are too many, those whose time ends first. A call adds at most three
-- keys, so removing a few is enough.
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 10)
local over = math.min(redis.call('ZCARD', KEYS[2]) - most, 10)
if over > #gone then
  gone = redis.call('ZRANGE', KEYS[2], 0, over - 1)
end
if #gone > 0 then
  redis.call('HDEL', KEYS[1], unpack(gone))
  redis.call('ZREM', KEYS[2], unpack(gone))
end
for _, name in ipairs(KEYS) do
  redis.call('PEXPIRE', name, 2 * memory)
end
return 0
