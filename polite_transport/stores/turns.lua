-- The turns of one host, on the server's clock; records.py says the same in Python.
--
-- KEYS: the host's record, the epoch. All that is kept is in microseconds.
-- ARGV: the verb, then what it takes.
-- Every verb is idempotent by token, since a client that lost the answer asks again.

local SECOND = 1000000
local CLAIM = 1 * SECOND
local PASS = 0.25 * SECOND
local REMEMBERED = 300 * SECOND
local NEVER = 0 -- the server's clock counts from 1970

local time = redis.call('TIME')
local now = time[1] * SECOND + time[2]

local function whole(number)
  return string.format('%.0f', number) -- Lua's own conversion drops digits
end

-- When the server was started, or lost its memory, at the latest.
local function read_epoch()
  local known = redis.call('GET', KEYS[2])
  if known then
    return tonumber(string.match(known, '(%d+)$'))
  end
  redis.call('SET', KEYS[2], '? ' .. whole(now))
  return now
end

local function read()
  local packed = redis.call('GET', KEYS[1])
  if not packed then
    return {last = NEVER, delay = 0, floor = NEVER, strikes = 0, holder = '', is_sending = false,
      ends = 0, pass_until = NEVER, passing = '', queue = {}}
  end
  local record = {}
  record.last, record.delay, record.floor, record.strikes, record.holder, record.is_sending,
    record.ends, record.pass_until, record.passing, record.queue = cmsgpack.unpack(packed)
  return record
end

local function start_of(record, delay)
  return math.max(record.last + math.max(record.delay, delay), record.floor)
end

-- Let a request hold off those after it; see Record.count in turns.py.
local function count(record, ended, delay, arrived)
  local due = record.last + record.delay
  local arrival = arrived and ended or ended + delay
  record.last = math.max(record.last, arrival)
  record.delay = math.max(due - record.last, delay - (record.last - arrival))
end

local function channel_of(token)
  return string.match(token, '^[^:]*')
end

local function delay_of(token)
  return tonumber(string.match(token, '[^:]*$'))
end

local function write(record)
  local needed = math.max(start_of(record, REMEMBERED), record.pass_until + REMEMBERED)
  if record.holder ~= '' then
    local delay = delay_of(record.holder)
    needed = math.max(needed, record.ends + delay + math.max(delay, REMEMBERED))
  end
  local packed = cmsgpack.pack(record.last, record.delay, record.floor, record.strikes,
    record.holder, record.is_sending, record.ends, record.pass_until, record.passing, record.queue)
  redis.call('SET', KEYS[1], packed, 'PX', whole(math.max(math.ceil((needed - now) / 1000), 1000)))
end

local function wake(token)
  redis.call('PUBLISH', channel_of(token), token)
end

local function starts(record, token, epoch)
  local delay = delay_of(token)
  local start = start_of(record, delay)
  if record.last < epoch then
    start = math.max(start, epoch + delay)
  end
  if record.passing ~= '' and record.passing ~= channel_of(token) then
    start = math.max(start, record.pass_until + delay)
  end
  return start
end

local function end_overdue(record)
  if record.holder == '' or now < record.ends then
    return
  end
  if record.is_sending then
    count(record, record.ends, delay_of(record.holder), false)
  end
  record.holder = ''
  record.is_sending = false
end

local function promote(record, epoch)
  if #record.queue == 0 then
    return ''
  end
  record.holder = table.remove(record.queue, 1)
  record.is_sending = false
  record.ends = math.max(now, starts(record, record.holder, epoch)) + CLAIM
  return record.holder
end

local function place_of(record, token)
  for place, other in ipairs(record.queue) do
    if other == token then
      return place
    end
  end
  return nil
end

local verbs = {}

-- token, not_before, lease -> granted (1 or 0), wait, pushed, ask_again
function verbs.acquire(record, token, not_before, lease)
  local epoch = read_epoch()
  end_overdue(record)
  local woken = ''
  if record.holder == '' then
    woken = promote(record, epoch)
  end
  if record.holder == '' then
    record.holder = token
  end
  local pushed = math.max(record.floor - now, 0)
  if record.holder == token then
    local start = math.max(starts(record, token, epoch), now + not_before)
    if start <= now then
      record.is_sending = true
      record.ends = now + lease
      write(record)
      return {1, 0, 0, 0}
    end
    record.is_sending = false
    record.ends = start + CLAIM
    write(record)
    return {1, start - now, pushed, 0}
  end
  if not place_of(record, token) then
    record.queue[#record.queue + 1] = token
  end
  local wait = math.max(starts(record, record.holder, epoch) - now, 0) + delay_of(record.holder)
  for place = 1, place_of(record, token) - 1 do
    wait = wait + delay_of(record.queue[place])
  end
  write(record)
  if woken ~= '' then
    wake(woken)
  end
  return {0, wait, pushed, math.max(record.ends - now, 0)}
end

-- token, sent (1 or 0), delay, arrived (1 or 0), push, overloaded (1, 0, or -1 for not known), then
-- our own pauses after the first, second, ... overload in a row -> push
function verbs.release(record, token, sent, delay, arrived, push, overloaded, ...)
  if overloaded == 1 and now >= record.floor then
    local pauses = {...}
    record.strikes = record.strikes + 1
    push = math.max(push, tonumber(pauses[math.min(record.strikes, #pauses)]))
  elseif overloaded == 0 then
    record.strikes = 0
  end
  if push > 0 then
    record.floor = math.max(record.floor, now + push)
  end
  local woken = ''
  if token ~= '' and record.holder == token then
    if sent == 1 then
      count(record, now, delay, arrived == 1)
    end
    record.holder = ''
    record.is_sending = false
    woken = promote(record, read_epoch())
  else
    local place = place_of(record, token)
    if place then
      table.remove(record.queue, place)
    elseif sent == 1 then
      count(record, now, delay, arrived == 1)
    end
  end
  write(record)
  if woken ~= '' then
    wake(woken)
  end
  return push
end

-- channel -> microseconds
function verbs.let_pass(record, channel)
  end_overdue(record)
  local bound = record.holder ~= '' or #record.queue > 0 or record.strikes > 0
  if bound or start_of(record, 0) > now then
    write(record)
    return 0
  end
  if record.passing ~= '' and record.passing ~= channel and now < record.pass_until + REMEMBERED then
    record.passing = '*'
  else
    record.passing = channel
  end
  record.pass_until = now + PASS
  write(record)
  return PASS
end

-- token, lease
function verbs.renew(record, token, lease)
  if record.holder == '' or record.holder == token then
    record.holder = token
    record.is_sending = true
    record.ends = now + lease
    write(record)
  end
  return 0
end

local verb = ARGV[1]
local first = ARGV[2]
local numbers = {}
for place = 3, #ARGV do
  numbers[#numbers + 1] = tonumber(ARGV[place])
end
return verbs[verb](read(), first, unpack(numbers))
