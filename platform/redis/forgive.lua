-- Removes the last attempt of each key, with the delay after it.
-- KEYS: as in attempt.lua. ARGV: the names of the keys.
for _, name in ipairs(ARGV) do
  local kept = redis.call('HGET', KEYS[1], name)
  if kept then
    local count = tonumber(string.match(kept, '%d+')) - 1
    if count > 0 then
      redis.call('HSET', KEYS[1], name, count .. ' 0')
    else
      redis.call('HDEL', KEYS[1], name)
      redis.call('ZREM', KEYS[2], name)
    end
  end
end
return 0
