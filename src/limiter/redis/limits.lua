-- Runs one step on the slots of an API key that several machines share. The script is atomic.
-- All data is in one key, so that the script also runs in Redis Cluster. The key is a hash with these fields:
--   slot:<id>             end of the time in which the slot counts
--   wait:<rank>:<owner>   start of the wait of a process, and the time of its next request
--   held                  end of the time in which nothing is granted
--   returned              time at which a process last reconnected after an outage
-- Times are microseconds of this server's clock. ARGV[1] is the step as JSON: see `ScriptStep` in redis-ledger.ts.
local key, step = KEYS[1], cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local LATE = 1000000
local MAX_HOLD = 61000000

local function put(field, ...)
  local texts = {}
  for _, us in ipairs({ ... }) do texts[#texts + 1] = string.format('%.0f', us) end
  redis.call('HSET', key, field, table.concat(texts, ' '))
end
local function drop(field) redis.call('HDEL', key, field) end

for id, us in pairs(step.slots or {}) do put('slot:' .. id, now + us) end
for _, id in ipairs(step.free or {}) do drop('slot:' .. id) end
if step.withdraw then drop('wait:' .. step.withdraw .. ':' .. step.owner) end

-- If this clock was set back, stored times may be far in the future: they are limited to the longest time from now.
local longest = now + step.lease + step.window
local untils, known, waiters, held, returned = {}, {}, {}, 0, 0
local fields = redis.call('HGETALL', key)
for at = 1, #fields, 2 do
  local field, value = fields[at], fields[at + 1]
  local id = string.match(field, '^slot:(.*)$')
  local rank, owner = string.match(field, '^wait:(%d):(.*)$')
  if id then
    local until_ = tonumber(value)
    if until_ > longest then
      until_ = longest
      put(field, until_)
    end
    if until_ <= now then
      drop(field)
    else
      untils[#untils + 1] = until_
      known[id] = true
    end
  elseif rank then
    local since, due = string.match(value, '^(%d+) (%d+)$')
    since, due = tonumber(since), tonumber(due)
    -- A process that did not ask again in time was killed or is suspended.
    if due < now - LATE or due > now + step.window + LATE then
      drop(field)
    else
      waiters[#waiters + 1] = { rank = tonumber(rank), owner = owner, since = since }
    end
  elseif field == 'held' then
    held = tonumber(value)
    if held > now + MAX_HOLD then held = 0 end
  elseif field == 'returned' then
    returned = tonumber(value)
  end
end

local hold = step.hold or 0
-- Other processes reconnect at the same time. They must record the slots granted during the outage before a new grant.
if step.returning and (returned <= now - step.window or returned > now) then
  hold = math.max(hold, step.returning)
  put('returned', now)
end
if now + hold > held and hold > 0 then
  held = now + hold
  put('held', held)
end

local granted, wait = 0, 0
local take = step.take
if take and known[take.id] then
  granted = 1
elseif take then
  local since = nil
  for _, waiter in ipairs(waiters) do
    if waiter.owner == step.owner and waiter.rank == take.rank then since = waiter.since end
  end
  local ahead = 0
  for _, waiter in ipairs(waiters) do
    local isBefore = waiter.rank == take.rank and (since == nil or waiter.since < since)
    if waiter.owner ~= step.owner and (waiter.rank < take.rank or isBefore) then ahead = ahead + 1 end
  end
  table.sort(untils)
  local surplus = #untils + ahead - step.requests
  if surplus >= 0 then wait = (untils[surplus + 1] or now + step.window) - now end
  -- A request in flight may be answered now. Its slot is then free one window from now.
  wait = math.min(math.max(wait, held - now), step.window)
  local field = 'wait:' .. take.rank .. ':' .. step.owner
  if wait > 0 then
    put(field, since or now, now + wait)
  else
    granted = 1
    drop(field)
    put('slot:' .. take.id, now + step.lease + step.window)
    untils[#untils + 1] = now
  end
end

redis.call('PEXPIRE', key, math.ceil((step.lease + step.window + MAX_HOLD) / 1000))
return { granted, math.ceil(wait / 1000), #untils }
