-- Frees its own claim, and only that; returns a record that stands. KEYS: the key. ARGV: token.
-- 1 released, 0 nothing or another's claim stands, -1 a foreign value stands.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 120)
if type(head) == 'table' then return head end
-- A claim is one line of 120 bytes; a record goes on behind it.
local state = string.sub(head, 1, 5)
if state == 'IDP1P' and #head == 120 then
  if string.sub(head, 7, 38) ~= ARGV[1] then return 0 end
  return redis.call('DEL', KEYS[1])
end
if state == 'IDP1C' then return redis.call('GET', KEYS[1]) end
if head == '' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return -1
