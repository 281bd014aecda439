-- Prolongs the lock of one owner, and only that. KEYS: the lock. ARGV: the owner, the time to live
-- in ms.
-- 1 renewed, 0 it is free or another's.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
