package history

import (
	"slices"
	"sync"
)

// Outcome is how a transaction ended.
type Outcome int

const (
	Committed Outcome = iota
	Aborted           // rolled back, wounded or expired; it wrote nothing
)

// Transaction is one transaction, plain commit or plain read.
type Transaction struct {
	ID      string
	Outcome Outcome
	// Began and Ended bound the transaction in real time, in any unit; both 0:
	// unknown.
	Began, Ended int64
	// Reads are the versions read, by document name.
	Reads map[string]int64
	// Writes are the documents that got a new version, at Commit. An aborted
	// transaction has none, but its reads must be consistent as well.
	Writes []string
	// Commit is the commit time, µs. Check ignores it if there are no writes.
	Commit int64
}

// Log collects transactions. Its methods are safe for concurrent use. A nil Log
// collects nothing.
type Log struct {
	mu  sync.Mutex
	all []Transaction
}

// Add records a transaction that has ended.
func (l *Log) Add(tx Transaction) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, tx)
}

// Transactions returns the recorded transactions, in the order of Add.
func (l *Log) Transactions() []Transaction {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}
