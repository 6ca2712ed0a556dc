-- One copy of robots.txt: who may fetch it, who waits for it, and what it came to.
--
-- KEYS: the copy's hash. ARGV: the verb, the token, then what the verb takes.
-- Times are of the server's clock, in microseconds; "expires_at" alone is wall time, in seconds.

local SECOND = 1000000
local LONGEST_STALE = 30 * 86400 -- an older copy speaks for no site

local time = redis.call('TIME')
local now = time[1] * SECOND + time[2]

local function whole(number)
  return string.format('%.0f', number)
end

local function get(...)
  local values = redis.call('HMGET', KEYS[1], ...)
  for place = 1, #values do
    values[place] = values[place] or ''
  end
  return values
end

local function wake_all(waiting)
  for token in string.gmatch(waiting, '%S+') do
    redis.call('PUBLISH', string.match(token, '^[^:]*'), token)
  end
end

local verbs = {}

-- token, waited, wall, lease -> what it came to, then its parts
function verbs.claim(token, waited, wall, lease)
  waited, wall, lease = tonumber(waited), tonumber(wall), tonumber(lease)
  local known = get('holder', 'ends', 'waiting', 'expires_at', 'kept_at', 'failure', 'failed_at')
  local holder, waiting = known[1], known[3]
  local ends = tonumber(known[2]) or 0
  local expires_at, kept_at = tonumber(known[4]), tonumber(known[5]) or 0
  if expires_at and (expires_at > wall or kept_at > now - waited) then
    return {'kept', unpack(get('head', 'body', 'digest', 'expires_at'))}
  end
  if known[6] ~= '' and (tonumber(known[7]) or 0) > now - waited then
    return {'failed', known[6]}
  end
  if holder ~= '' and holder ~= token and ends > now then
    if not string.find(' ' .. waiting .. ' ', ' ' .. token .. ' ', 1, true) then
      redis.call('HSET', KEYS[1], 'waiting', waiting .. ' ' .. token)
    end
    return {'elsewhere', whole(ends - now)}
  end
  redis.call('HSET', KEYS[1], 'holder', token, 'ends', whole(now + lease))
  redis.call('EXPIRE', KEYS[1], LONGEST_STALE)
  if not expires_at then
    return {'granted'}
  end
  return {'granted', unpack(get('head', 'body', 'digest', 'expires_at'))}
end

-- token, then "copy" with head, body, digest and expires_at; or "failure" with what was said; or
-- "nothing"
function verbs.publish(token, kind, ...)
  local parts = {...}
  local known = get('holder', 'waiting')
  if kind == 'copy' then -- a fact, even from one whose claim had ended
    redis.call('HSET', KEYS[1], 'head', parts[1], 'body', parts[2], 'digest', parts[3],
      'expires_at', parts[4], 'kept_at', whole(now))
    redis.call('EXPIRE', KEYS[1], LONGEST_STALE)
  end
  if known[1] ~= token then
    local others = {}
    for other in string.gmatch(known[2], '%S+') do
      if other ~= token then
        others[#others + 1] = other
      end
    end
    if #others > 0 or known[2] ~= '' then
      redis.call('HSET', KEYS[1], 'waiting', table.concat(others, ' '))
    end
    return 0
  end
  if kind == 'failure' then
    redis.call('HSET', KEYS[1], 'failure', parts[1], 'failed_at', whole(now))
  end
  redis.call('HDEL', KEYS[1], 'holder', 'ends', 'waiting')
  wake_all(known[2])
  return 0
end

-- token, lease
function verbs.renew(token, lease)
  if get('holder')[1] == token then
    redis.call('HSET', KEYS[1], 'ends', whole(now + lease))
  end
  return 0
end

function verbs.discard(_)
  redis.call('HDEL', KEYS[1], 'head', 'body', 'digest', 'expires_at')
  return 0
end

return verbs[ARGV[1]](unpack(ARGV, 2))
