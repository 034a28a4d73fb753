package store

import "sync"

// Log keeps commits beyond the process. Append returns when the whole batch is
// as durable as the log promises; it either keeps all of it or none.
type Log interface {
	Append(batch []Entry) error
}

// Entry is one commit for the log.
type Entry struct {
	Time    int64
	Changes []Change
}

// committer writes commits to the log in batches: while one batch is being
// written the next one gathers. It then publishes them in order.
type committer struct {
	db  *DB
	log Log

	mu      sync.Mutex
	queue   []pending
	signal  chan struct{}
	stopped chan struct{}
	failure error // set once the log has failed
}

type pending struct {
	entry Entry
	done  chan error
}

// UseLog makes all further commits durable through log, until StopLog.
func (db *DB) UseLog(log Log) {
	db.log = &committer{db: db, log: log, signal: make(chan struct{}, 1), stopped: make(chan struct{})}
	go db.log.run()
}

// StopLog writes what is queued and ends the goroutine that UseLog started.
// Nothing may be committed afterwards. It returns why the log failed, if it
// did: no commit since then was kept.
func (db *DB) StopLog() error {
	if db.log == nil {
		return nil
	}
	close(db.log.signal)
	<-db.log.stopped
	return db.log.failure
}

// submit queues a commit. The DB's mutex is held, so queue order is time order.
func (c *committer) submit(changes []Change, at int64) <-chan error {
	done := make(chan error, 1)
	c.mu.Lock()
	c.queue = append(c.queue, pending{Entry{at, changes}, done})
	c.mu.Unlock()
	select {
	case c.signal <- struct{}{}:
	default:
	}
	return done
}

func (c *committer) run() {
	defer close(c.stopped)
	for open := true; open; {
		_, open = <-c.signal
		for batch := c.take(); len(batch) > 0; batch = c.take() {
			c.write(batch)
		}
	}
}

func (c *committer) take() []pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.queue
	c.queue = nil
	return batch
}

func (c *committer) write(batch []pending) {
	if c.failure == nil {
		entries := make([]Entry, len(batch))
		for i, p := range batch {
			entries[i] = p.entry
		}
		c.failure = c.log.Append(entries)
	}
	c.db.mu.Lock()
	for _, p := range batch {
		c.db.inFlight = c.db.inFlight[1:]
		if c.failure == nil {
			c.db.publish(p.entry.Changes, p.entry.Time)
		}
	}
	c.db.published.Broadcast()
	c.db.mu.Unlock()
	for _, p := range batch {
		p.done <- c.failure
	}
}

// Restore publishes a document found in the log at start, before UseLog.
func (db *DB) Restore(change Change, at int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.publish([]Change{change}, at)
}

// Resume continues after the last commit in the log. Older versions did not
// survive, so nothing before it can be read as of its time.
func (db *DB) Resume(last int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.last = max(db.last, last)
	db.floor = last
}
