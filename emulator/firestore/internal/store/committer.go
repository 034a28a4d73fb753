package store

import "sync"

// Saver keeps commits beyond the process. Save returns once the whole batch is
// durable. It keeps all of the batch or, when it fails, nothing.
type Saver interface {
	Save(batch []Commit) error
}

// Commit is one commit to save.
type Commit struct {
	Time    int64
	Changes []Change
}

// committer saves commits in batches (group commit): while one batch is being
// saved, the next one gathers. It then publishes the commits in order.
type committer struct {
	db    *DB
	saver Saver

	mu      sync.Mutex
	queue   []pending
	signal  chan struct{}
	stopped chan struct{}
	failure error // set once Save has failed
}

type pending struct {
	commit Commit
	done   chan error
}

// SaveTo makes all further commits durable until StopSaving.
func (db *DB) SaveTo(saver Saver) {
	db.committer = &committer{db: db, saver: saver, signal: make(chan struct{}, 1), stopped: make(chan struct{})}
	go db.committer.run()
}

// StopSaving saves what is queued and ends the goroutine that SaveTo started.
// Nothing may be committed afterwards. If Save has failed it returns that error:
// no commit since then was kept.
func (db *DB) StopSaving() error {
	if db.committer == nil {
		return nil
	}
	close(db.committer.signal)
	<-db.committer.stopped
	return db.committer.failure
}

// submit queues a commit. Callers hold the DB's mutex, so the queue is in order of
// commit times.
func (c *committer) submit(changes []Change, at int64) <-chan error {
	done := make(chan error, 1)
	c.mu.Lock()
	c.queue = append(c.queue, pending{Commit{at, changes}, done})
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
		commits := make([]Commit, len(batch))
		for i, p := range batch {
			commits[i] = p.commit
		}
		c.failure = c.saver.Save(commits)
	}
	c.db.mu.Lock()
	for _, p := range batch {
		c.db.inFlight = c.db.inFlight[1:]
		if c.failure == nil {
			c.db.publish(p.commit.Changes, p.commit.Time)
		}
	}
	c.db.published.Broadcast()
	c.db.mu.Unlock()
	for _, p := range batch {
		p.done <- c.failure
	}
}

// Restore publishes a document that was saved earlier. Call it before SaveTo.
func (db *DB) Restore(change Change, at int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.publish([]Change{change}, at)
}

// Resume continues after the last saved commit. Older versions were not saved, so
// reads as of an earlier time are refused.
func (db *DB) Resume(last int64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.last = max(db.last, last)
	db.floor = last
}
