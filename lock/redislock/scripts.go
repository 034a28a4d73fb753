package redislock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Each verb is one script: one round trip, atomic, by the server's time. A lock's key lives
// exactly as long as the lock, a second longer than its lease (lock.Tolerance), so an absent
// key is a free lock. Its end is set as a time (PXAT), because PX would count from a later look
// at the clock. Only other programs leave a lock that is over.
//
// A stored lock is flat JSON without spaces, as SyncGuard's cjson writes it. Quotes within a
// value are escaped, so a plain search finds "name":value.
//
// KEYS are always lock, id index, fence counter. An index entry holds the lock's key, or
// several keys with \255 between, which is in no key. After a release it holds \0 and the name
// of the call that made it, for a while.

const luaNow = `local t = call('TIME')
local now = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000
`

// acquireScript takes the stored lock up to its fence, and in ms the lease and the life of the
// lock's key and of the index. It returns the rest of the stored lock, or the lock in the way
// and the time. It counts first: if the counter is damaged, nothing is written.
//
// A lock of the same id, whose reply was lost, is written again, because WAIT waits only for
// writes of its own connection. PERSIST changes nothing, because counters do not expire, but
// fails on a replica, whose refusals may lag too.
var acquireScript = newScript(`local call = redis.call
local old = call('GET', KEYS[1])
` + luaNow + `if old then
  local ends = tonumber(string.match(old, '"expiresAtMs":(%d+)'))
  if ends and ends > now - 1000 then
    call('PERSIST', KEYS[3])
    if string.find(old, string.sub(ARGV[1], 2, 34), 1, true) then call('SET', KEYS[1], old, 'KEEPTTL') end
    return {old, now}
  end
end
local n = call('INCR', KEYS[3])
if n < 2 or n > 900000000000000 then
  if n ~= 1 then
    call('DECR', KEYS[3])
    return redis.error_reply('LOCKFENCE the counter is used up or damaged')
  end
  local last = old and tonumber(string.match(old, '"fence":"(%d+)"')) or 0
  if last > 0 then
    n = last + 1
    call('SET', KEYS[3], string.format('%d', n))
  end
end
local rest = string.format('%015d","expiresAtMs":%d,"acquiredAtMs":%d}', n, now + ARGV[2], now)
if not call('SET', KEYS[2], KEYS[1], 'PX', ARGV[4], 'NX') then
  local all = {KEYS[1]}
  for key in string.gmatch(call('GET', KEYS[2]), '[^\255]+') do
    if key ~= KEYS[1] and string.byte(key) ~= 0 then all[#all + 1] = key end
  end
  call('SET', KEYS[2], table.concat(all, '\255'), 'PX', ARGV[4])
end
call('SET', KEYS[1], ARGV[1] .. rest, 'PXAT', now + ARGV[3])
return rest
`)

// releaseScript takes the lock id as stored, the name of this call, how long to keep it in ms,
// and the channel of the waiters. It returns 1 if this call, now or when it was sent before,
// released the lock; otherwise a negative number: over or not found. A lock that is there is
// live. DEL of an absent key changes nothing, but fails on a replica.
var releaseScript = newScript(`local call = redis.call
local held = call('GET', KEYS[1])
local index = call('GET', KEYS[2])
if not held then
  if index == ARGV[2] then return 1 end
  call('DEL', KEYS[1])
  return index == KEYS[1] and -2 or -1
end
if not string.find(held, ARGV[1], 1, true) then return index == ARGV[2] and 1 or -1 end
call('DEL', KEYS[1])
if not index or index == KEYS[1] then
  call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
else
  local others = {}
  for key in string.gmatch(index, '[^\255]+') do
    if key ~= KEYS[1] then others[#others + 1] = key end
  end
  call('SET', KEYS[2], table.concat(others, '\255'), 'KEEPTTL')
end
call('PUBLISH', ARGV[4], held)
return 1
`)

// extendScript takes the lock id as stored, and in ms the lease and the life of the lock's key
// and of the index. It returns the new end, or what releaseScript does. It does not revive a
// lock whose key was left without an end.
var extendScript = newScript(`local call = redis.call
local held = call('GET', KEYS[1])
local index = call('GET', KEYS[2])
if not held then
  call('DEL', KEYS[1])
  return index == KEYS[1] and -2 or -1
end
if not string.find(held, ARGV[1], 1, true) then return -1 end
` + luaNow + `local ends = tonumber(string.match(held, '"expiresAtMs":(%d+)'))
if not ends or ends <= now - 1000 then return -2 end
ends = now + ARGV[2]
call('SET', KEYS[1], (string.gsub(held, '"expiresAtMs":%d+', string.format('"expiresAtMs":%d', ends), 1)), 'PXAT', now + ARGV[3])
call('SET', KEYS[2], index or KEYS[1], 'PX', ARGV[4])
return ends
`)

// readScript returns the time and the stored lock.
var readScript = newScript(`local call = redis.call
` + luaNow + `return {now, call('GET', KEYS[1])}
`)

// findScript takes an index and returns the time and the stored locks that it names.
var findScript = newScript(`local call = redis.call
` + luaNow + `local found = {now}
local index = call('GET', KEYS[1])
if index and string.byte(index) ~= 0 then
  for key in string.gmatch(index, '[^\255]+') do
    found[#found + 1] = key
    found[#found + 1] = call('GET', key)
  end
end
return found
`)

// script is a script and what the server's cache calls it.
type script struct{ source, sha string }

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// command is a call that the client library must not send again by itself: this package decides
// what a lost reply means.
type command struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (command) NoRetry() bool { return true }

// run calls a script by its hash, or by its text if the server does not have it. If lasting, it
// waits until Config.Replicas replicas have what the script wrote.
func (b *Backend) run(ctx context.Context, s *script, lasting bool, keys []string, args ...string) (any, error) {
	call := make([]any, 0, 3+len(keys)+len(args))
	call = append(call, "evalsha", s.sha, len(keys))
	for _, key := range keys {
		call = append(call, key)
	}
	for _, arg := range args {
		call = append(call, arg)
	}
	send := b.send
	if lasting && b.cfg.Replicas > 0 {
		send = b.sendAndWait
	}
	reply, err := send(ctx, call)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		call[0], call[1] = "eval", s.source
		return send(ctx, call)
	}
	return reply, err
}

// send makes one request.
func (b *Backend) send(ctx context.Context, call []any) (any, error) {
	cmd := command{redis.NewCmd(ctx, call...)}
	err := b.client.Process(ctx, cmd)
	return cmd.Val(), err
}

// sendAndWait makes one request and, on the same connection, waits for the replicas.
func (b *Backend) sendAndWait(ctx context.Context, call []any) (any, error) {
	cmd := command{redis.NewCmd(ctx, call...)}
	wait := command{redis.NewCmd(ctx, "wait", b.cfg.Replicas, b.cfg.ReplicaTimeout.Milliseconds())}
	_, err := b.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		return errors.Join(p.Process(ctx, cmd), p.Process(ctx, wait))
	})
	switch {
	case cmd.Err() != nil:
		return nil, cmd.Err()
	case err != nil:
		return nil, err
	}
	if n, _ := wait.Val().(int64); n < int64(b.cfg.Replicas) {
		return nil, errFewReplicas
	}
	return cmd.Val(), nil
}
