package lockspec

// Worlds are worlds in which every property holds. Each lets a few things go wrong, so
// that every one of its histories can be followed.
func Worlds() []World {
	var worlds []World
	for _, w := range []World{serverWorld(), clientWorld(), guardedWorld()} {
		for _, b := range []struct {
			name string
			budget
		}{
			{"slow, lost and late calls", budget{Acquires: 3, Slow: 2}},
			{"extensions", budget{Acquires: 2, Extends: 2, Slow: 2}},
			{"crash and break", budget{Acquires: 3, Extends: 1, Crashes: 1, Breaks: 1, Slow: 1}},
			{"paused writes", budget{Acquires: 2, Crashes: 1, Writes: 2, Slow: 1}},
			{"clocks set", budget{Acquires: 2, Extends: 1, Jumps: 1, Slow: 1}},
		} {
			if b.Jumps > 0 && w.Time == ClientTime {
				continue // not safe: see Variants
			}
			v := w
			v.Name, v.Budget = w.Time.String()+", "+b.name, b.budget
			worlds = append(worlds, v)
		}
	}
	return worlds
}

// serverWorld is a store with its own clock; clients' clocks show anything.
func serverWorld() World {
	return World{
		Time: ServerTime, TTL: 3, Extensions: []int8{3, 1}, Tolerance: 1,
		Offsets: [clients]int8{0, 9}, Jump: 7, Until: 8,
		Budget: budget{Acquires: 3, Extends: 1, Slow: 2},
	}
}

// clientWorld is a store whose clients judge by their own clocks, which differ by all of
// the tolerance.
func clientWorld() World {
	w := serverWorld()
	w.Time, w.Offsets, w.Bound = ClientTime, [clients]int8{0, 1}, 1
	return w
}

// guardedWorld is Firestore with the server-time guard: clocks differ by far more than
// the tolerance, and may be set while leases are held.
func guardedWorld() World {
	w := serverWorld()
	w.Time, w.Offsets = GuardedTime, [clients]int8{-7, 7}
	return w
}

// Variant is a world with one thing wrong, and the property that it breaks.
type Variant struct {
	World
	Breaks  Property
	Steps   int    // of the shortest history that shows it
	Because string // what the missing rule or assumption is for
}

// Variants are worlds with one thing wrong each.
func Variants() []Variant {
	server, client, guarded := serverWorld(), clientWorld(), guardedWorld()
	failing := server
	failing.Budget.Failures = 1
	jumping := server
	jumping.Budget.Jumps = 1
	clientJumps := client
	clientJumps.Budget.Jumps, clientJumps.Bound = 1, 2*clientJumps.Jump // so that Freedom waits for it
	beyond := client
	beyond.Offsets = [clients]int8{0, 2}
	pausing := server
	pausing.Budget = budget{Acquires: 2, Writes: 2}
	breaking := server
	breaking.Budget.Breaks = 1
	extending := server
	extending.Budget.Extends = 2
	retrying := server
	retrying.Budget = budget{Acquires: 2, Slow: 2}
	list := []struct {
		name   string
		world  World
		broken Defect
		breaks Property
		steps  int
		text   string
	}{
		// What the protocol relies on.
		{"clocks differ by more than the tolerance", beyond, ClocksBeyondBound, Exclusion, 3, "client time is safe only while all clocks agree within the tolerance"},
		{"no tolerance", client, NoTolerance, Exclusion, 3, "the tolerance absorbs the difference of two clocks that are right within the bound"},
		{"a clock is set during a lease", clientJumps, ClientClockJumps, Exclusion, 3, "with client time no clock may be set while a lease is held"},
		{"the server's clock jumps ahead", jumping, ServerClockJumps, Exclusion, 3, "with server time the server's clock must not be set ahead by more than the tolerance"},
		{"the replica lacks the last writes", failing, ReplicaLags, Fences, 3, "a promoted replica must have every write that was answered: WAIT and AOF in Redis"},
		{"the store restarts empty", failing, RestartsEmpty, Fences, 3, "the counter must outlive the store's process"},
		{"the resource does not compare fences", pausing, NoFenceCheck, Resource, 10, "a holder that is paused between its check and its write does not notice the end of its lease"},

		// Clients.
		{"the deadline is counted from the reply", retrying, CountsFromReply, Exclusion, 8, "the store counts from before the reply: so must the holder, from before it asked"},
		{"a lease found by a retry is trusted in full", retrying, TrustsRetryInFull, Exclusion, 9, "the lease that a retry finds has run since the first try"},
		{"the holder counts on the tolerance", client, CountsTolerance, Exclusion, 4, "the tolerance belongs to everybody but the holder"},
		{"the deadline is on the wall clock", jumping, WallClockDeadline, Exclusion, 6, "a wall clock that is set back makes the lease longer for its holder alone"},
		{"an id is used again after an unknown outcome", server, ReusesID, Exclusion, 6, "the release in the background of the first use ends the second"},
		{"work goes on while the lock is released", server, WorksWhileReleasing, Exclusion, 4, "the release may be executed long before its reply arrives"},
		{"a shortening counts once it is answered", server, IgnoresShortening, Exclusion, 6, "the store may hold the sooner end although its reply was lost"},
		{"a longer extension follows a shorter one that may be late", extending, ExtendsAfterUnknown, Exclusion, 8, "the late one ends the lease sooner than its holder believes"},

		// Stores.
		{"a held lock is granted", server, GrantsWhileHeld, Exclusion, 2, "an acquisition must judge the lock that it replaces"},
		{"a write does not check what was read", client, WritesUnchecked, Exclusion, 5, "two callers that read the same free lock must not both write it"},
		{"the guard judges by the local clock alone", guarded, JudgesByOneClock, Exclusion, 2, "a caller whose clock is ahead takes every lock for expired"},
		{"the server's end is not counted", guarded, NoServerEnd, Freedom, 1, "a holder whose clock is ahead writes an end in the far future"},
		{"leases do not expire", server, NeverExpires, Freedom, 1, "a crashed holder releases nothing"},
		{"the fence is not incremented", server, SameFence, Fences, 3, "equal fences cannot be ordered"},
		{"the fence is a time", client, FenceFromClock, Fences, 3, "clocks of two clients do not order their leases"},
		{"a refused acquisition takes a fence", server, BurnsFences, Refusal, 2, "contenders would use up the counter"},
		{"release deletes the counter", server, ReleaseDropsCounter, Fences, 3, "the counter must outlive the lease"},
		{"break deletes the counter", breaking, BreakDropsCounter, Fences, 3, "the broken holder's late writes must meet a higher fence"},
		{"a retry is refused", server, RefusesRetries, Retry, 4, "whose reply was lost would wait for its own lease to expire"},
		{"a retry takes the lock anew", server, RetriesTakeAnew, Retry, 4, "a late copy of a request would change the lease under its holder"},
		{"extend does not compare ids", server, ExtendsForeign, Ownership, 6, "a former holder would extend its successor's lease and believe it its own"},
		{"extend revives a lease that is over", server, ExtendRevives, Fences, 7, "a late extension would bring back a lease older than one since granted"},
		{"extend changes the fence", server, ExtendTakesFence, Ownership, 2, "the holder goes on with a fence that is out of date"},
		{"release does not compare ids", server, ReleasesForeign, Ownership, 5, "a former holder would end its successor's lease"},
		{"release always says OK", server, ReleaseAlwaysOK, OneRelease, 5, "nobody could tell who gave the lock up"},
		{"release keeps the lock", server, ReleaseKeepsLock, OneRelease, 5, "the lock stays until it expires, and can be released again"},
	}
	variants := make([]Variant, 0, len(list))
	for _, v := range list {
		v.world.Name, v.world.Broken = v.name, v.broken
		variants = append(variants, Variant{v.world, v.breaks, v.steps, v.text})
	}
	return variants
}
