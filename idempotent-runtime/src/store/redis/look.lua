-- How long the claim that was found still stands, in ms; nothing if it does not. KEYS: the key.
-- ARGV: the claim as it is stored.
if redis.call('GETRANGE', KEYS[1], 0, 120) ~= ARGV[1] then return false end
return redis.call('PTTL', KEYS[1])
