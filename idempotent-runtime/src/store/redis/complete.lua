-- Puts a record where nothing or anybody's claim stands; never over a record, which it returns
-- unless it is its own. KEYS: the key, the one where it is staged. ARGV: token, retention in ms; and
-- the record where it is not staged.
-- 1 stored, 2 stored in place of another's claim, 0 nothing was staged, -1 a foreign value stands.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 120)
if type(head) == 'table' then
  if KEYS[2] then redis.call('UNLINK', KEYS[2]) end
  return head
end
-- A claim is one line of 120 bytes; a record goes on behind it.
local state, token = string.sub(head, 1, 5), string.sub(head, 7, 38)
local nothing = head == '' and redis.call('EXISTS', KEYS[1]) == 0
if nothing or (state == 'IDP1P' and #head == 120) then
  if KEYS[2] then
    -- The staged key has a time to live, which goes with it: at no point is there none.
    local moved = redis.pcall('RENAME', KEYS[2], KEYS[1])
    if moved.err then
      if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
      return moved
    end
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  else
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
  end
  if nothing or token == ARGV[1] then return 1 end
  return 2
end
if KEYS[2] then redis.call('UNLINK', KEYS[2]) end
if state ~= 'IDP1C' then return -1 end
if token == ARGV[1] then return 1 end
return redis.call('GET', KEYS[1])
