package redislock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Scripts of the verbs. Each is one round trip and atomic; the time is the server's. A
// lock's key exists exactly as long as the lock is live, a second longer than its lease
// (lock.Tolerance), so that a free lock is one that is absent, and nothing is decoded to
// see it. Its end is set as a time (PXAT): PX would count from a later look at the clock
// than the script's own. A lock that is over and yet there was written by something else.
//
// A stored lock is flat JSON without spaces, as SyncGuard's cjson writes it too: quotes
// within a value are escaped, so "name":value is found by plain search.
//
// KEYS are always lock, id index, fence counter. A value of the index is the lock's key;
// of an id that several locks have their keys with \255 between, which is in no key; after
// a release \0 and the name of the call that made it, for a while.

const luaNow = `local t = call('TIME')
local now = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000
`

// acquireScript takes: the stored lock up to its fence; the lease, the life of the lock's
// key and of the index, in ms. It returns the rest of the stored lock, or the one that is in
// the way and the time. A lock that an earlier call took under the same id, whose reply was
// lost, is written again as it is: WAIT waits for the writes of its own connection alone.
// PERSIST changes nothing, since counters do not expire, but a replica refuses it: there
// even a refusal would be an answer that may lag.
//
// The counter comes first: if anything is wrong with it, nothing is written.
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

// releaseScript takes: the lock id as stored; the name of this call; how long that is
// kept, in ms; the channel of those who wait. It returns 1 if this call, made once or
// again, released the lock, else a number below 0: over or not found. A lock that is there
// is live, so the time is not asked for. DEL of what is absent changes nothing, but a
// replica refuses it.
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

// extendScript takes: the lock id as stored; the lease, the life of the lock's key and of
// the index, in ms. It returns the new end, or what releaseScript does. A lock that was left
// there without an end of its key is not brought back.
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

// command is a call of a script that the client library must not send again by itself:
// what a lost reply means is for this package to say.
type command struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (command) NoRetry() bool { return true }

// run calls a script by its hash and, where the server does not have it, by its text. If
// lasting, what it wrote is waited for until the replicas of Config.Replicas have it.
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
