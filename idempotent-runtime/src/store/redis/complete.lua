-- Puts what was staged where nothing or anybody's claim stands; never over a record, which it
-- returns unless it is its own. KEYS: the key, the staged one. ARGV: token, retention in ms.
-- 1 stored, 2 stored in place of another's claim, 0 nothing was staged, -1 a foreign value stands.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 37)
if type(head) == 'table' then
  redis.call('UNLINK', KEYS[2])
  return head
end
local state, token = string.sub(head, 1, 5), string.sub(head, 7)
local nothing = head == '' and redis.call('EXISTS', KEYS[1]) == 0
if nothing or state == 'IDP1P' then
  -- The staged key has a time to live, which goes with it: at no point is there none.
  local moved = redis.pcall('RENAME', KEYS[2], KEYS[1])
  if moved.err then
    if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
    return moved
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  if nothing or token == ARGV[1] then return 1 end
  return 2
end
redis.call('UNLINK', KEYS[2])
if state ~= 'IDP1C' then return -1 end
if token == ARGV[1] then return 1 end
return redis.call('GET', KEYS[1])
