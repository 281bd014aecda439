-- Frees the lock of one owner, and only that (redis.io/docs/latest/commands/set, "Patterns").
-- KEYS: the lock. ARGV: the owner.
-- 1 released, 0 it is free or another's.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
