-- Prolongs its own claim, and puts it back where nothing stands; never over another's claim or a
-- record, which it returns. KEYS: the key. ARGV: the claim as it is stored, its time to live in ms.
-- 1 renewed, 2 restored, 0 another's claim stands, -1 a foreign value stands.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 120)
if type(head) == 'table' then return head end
if head == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
-- A claim is one line of 120 bytes; a record goes on behind it.
local state = string.sub(head, 1, 5)
if state == 'IDP1C' then return redis.call('GET', KEYS[1]) end
local renewed = 1
if head == '' and redis.call('EXISTS', KEYS[1]) == 0 then
  renewed = 2
elseif state ~= 'IDP1P' or #head ~= 120 then
  return -1
elseif string.sub(head, 7, 38) ~= string.sub(ARGV[1], 7, 38) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return renewed
