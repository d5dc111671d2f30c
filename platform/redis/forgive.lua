-- Takes the last attempt of a key back, with the delay after it.
-- KEYS: as of attempt.lua. ARGV: the key. Returns how many attempts are left.
local kept = redis.call('HGET', KEYS[1], ARGV[1])
if not kept then
  return 0
end
local count = tonumber(string.match(kept, '%d+')) - 1
if count > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], count .. ' 0')
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return count
