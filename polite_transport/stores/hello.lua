-- A server that has come up anew may have lost turns: hosts wait a delay from now on, once.
--
-- KEYS: the epoch. ARGV: the server's run id, which is another after each start and on each server;
-- whether there is nothing to wait for (1 or 0), because nothing was sent before.

local time = redis.call('TIME')
local known = redis.call('GET', KEYS[1])
if not known or string.match(known, '^%S+') ~= ARGV[1] then
  local epoch = ARGV[2] == '1' and 0 or time[1] * 1000000 + time[2]
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. string.format('%.0f', epoch))
end
return 0
