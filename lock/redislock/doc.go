// Package redislock keeps locks in Redis: a lock.Store with fencing tokens whose clock is
// the server's. Each verb is one Lua script and one round trip.
//
//	b, err := redislock.New(redis.NewClient(&redis.Options{Addr: addr}), redislock.Config{})
//
// Needed are Redis 6.2 or newer, or Valkey (tested with Redis 7.0 and Valkey 8.0), one
// primary, and go-redis. Keys, values and their meaning are those of SyncGuard 2.5.2's
// Redis backend, so processes of both contend for the same locks:
//
//	syncguard:KEY                  the lock, as JSON
//	syncguard:id:LOCKID            the key of the lock that has this id
//	syncguard:fence:syncguard:KEY  the fence counter, which never expires
//
// SyncGuard is not always safe, and this package keeps off where it is not. A lock of its
// own ends with its TTL, without the second (lock.Tolerance) that the contract grants
// others before they may take it; locks taken or extended by this package have it, also
// beside SyncGuard. SyncGuard takes keys whose place is that of an index or of a fence
// counter ("id:" and a lock id, "fence:syncguard:" and a key) and then breaks one or the
// other; this package refuses them. What SyncGuard releases is not told to those who wait
// here: they find it by polling, or when the lease ends.
//
// # What Redis can lose
//
// A fence is as durable as the write that counted it. If the server forgets acknowledged
// writes, it hands out the same fences again, and a resource that compares them cannot
// tell the old holder from the new one:
//
//   - Without appendonly a restart goes back to the last snapshot; with appendfsync
//     everysec a crash of the machine loses up to two seconds; so does a server that is
//     killed while its disk is busy, because it puts off writing then. Set always.
//   - A failover to a replica loses what had not reached it. Config.Replicas makes every
//     acquisition and extension wait for replicas; with it, a failover to one of those that
//     answered loses nothing, while one to another still may.
//   - Eviction may remove any key: set maxmemory-policy noeviction.
//
// New looks at the settings and logs a warning for each of these; see also
// Backend.CheckDurability. If fences must never repeat, use a store with consensus or
// synchronous replication instead.
//
// Leases end by the wall clock of the server. If it is set ahead, leases end early and
// locks may have two holders until the first notices; fences still rise. Let the server's
// clock be slewed, not stepped.
//
// # Failures
//
// Every error is a *lock.Error. Requests whose connection broke are made again, at most
// twice: the server recognises an acquisition by its lock id and a release by the name of
// the call. An error with OutcomeUnknown was not answered in the end; what it may have
// taken is released in the background, or ends with its TTL.
//
// It must not import a library of Google's, another backend, or anything of the fleet.
package redislock
