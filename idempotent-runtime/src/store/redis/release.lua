-- Frees its own claim, and only that; returns a record that stands. KEYS: the key. ARGV: token.
-- 1 released, 0 nothing or another's claim stands, -1 a foreign value stands.
local head = redis.pcall('GETRANGE', KEYS[1], 0, 37)
if type(head) == 'table' then return head end
local state = string.sub(head, 1, 5)
if state == 'IDP1P' then
  if string.sub(head, 7) ~= ARGV[1] then return 0 end
  return redis.call('DEL', KEYS[1])
end
if state == 'IDP1C' then return redis.call('GET', KEYS[1]) end
if head == '' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return -1
