-- Counts an attempt of a key, unless it has to wait.
-- KEYS: a hash of each key's count and the time until which it has to wait, and a sorted set of when each is forgotten.
-- ARGV: the key, its memory, the most keys, the least delay, then the delay after the first attempt, the second, and so on.
-- Times are in milliseconds. Returns the count, and how long the key has to wait, 0 when the attempt was counted.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local key, memory, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local count, ready = 0, 0
local ends = redis.call('ZSCORE', KEYS[2], key)
local kept = ends and tonumber(ends) > now and redis.call('HGET', KEYS[1], key)
if kept then
  count, ready = string.match(kept, '(%d+) (%d+)')
  count, ready = tonumber(count), tonumber(ready)
end
if ready > now then
  return { count, ready - now }
end

count = count + 1
local delay = tonumber(ARGV[4])
if #ARGV > 4 then
  delay = math.max(delay, tonumber(ARGV[math.min(4 + count, #ARGV)]))
end
redis.call('HSET', KEYS[1], key, string.format('%d %d', count, now + delay))
redis.call('ZADD', KEYS[2], now + delay + memory, key)

-- Forgets keys whose memory is over, and of too many those whose memory ends first. A call adds one key at most, so that
-- a few are enough.
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
return { count, 0 }
