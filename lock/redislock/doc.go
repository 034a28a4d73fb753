// Package redislock keeps locks in Redis: a lock.Store with fencing tokens whose clock is the
// server's. Each verb is one Lua script and one round trip.
//
//	b, err := redislock.New(redis.NewClient(&redis.Options{Addr: addr}), redislock.Config{})
//
// It needs Redis 6.2 or newer, or Valkey (tested with Redis 7.0 and Valkey 8.0), and one
// primary. Keys, values and their meaning are those of SyncGuard 2.5.2's Redis backend, so
// processes of both contend for the same locks:
//
//	syncguard:KEY                  the lock, as JSON
//	syncguard:id:LOCKID            the key of the lock that has this id
//	syncguard:fence:syncguard:KEY  the fence counter, which never expires
//
// SyncGuard is weaker in three ways. Its own locks end with their TTL, without the second
// (lock.Tolerance) before others may take them; locks taken or extended by this package have
// it. It takes keys whose place belongs to an index or a fence counter ("id:" and a lock id,
// "fence:syncguard:" and a key) and breaks one or the other; this package refuses them. It
// does not publish releases, so waiters here find them by polling.
//
// # What Redis can lose
//
// A fence is as durable as the write that counted it. A server that forgets acknowledged
// writes issues the same fences again, and a resource cannot tell the old holder from the new:
//
//   - Without appendonly a restart goes back to the last snapshot. With appendfsync everysec a
//     crash of the machine, or of the server while its disk is busy, loses up to two seconds.
//     Set always.
//   - A failover loses what had not reached the replica. Config.Replicas makes every
//     acquisition and extension wait for replicas; a failover to one that answered then loses
//     nothing.
//   - Eviction may remove any key: set maxmemory-policy noeviction.
//
// New logs a warning for each of these settings; see also Backend.CheckDurability. If fences
// must never repeat, use a store with consensus or synchronous replication.
//
// Leases end by the server's wall clock. If it is set ahead, leases end early and a lock may
// have two holders until the first notices; fences still rise. Slew it, do not step it.
//
// # Failures
//
// Every error is a *lock.Error. A request whose connection broke is repeated at most twice:
// the server recognises an acquisition by its lock id and a release by the name of the call.
// If no answer comes, the error has OutcomeUnknown set; what the call may have taken is
// released in the background, or ends with its TTL.
//
// It must not import a library of Google's, another backend, or anything of the fleet.
package redislock
