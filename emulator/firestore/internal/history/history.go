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
	// Began and Ended bound the transaction in real time, in any unit that rises;
	// both 0: unknown.
	Began, Ended int64
	// Reads are the versions seen, by document name.
	Reads map[string]int64
	// Writes are the documents that got a new version, at Commit. An aborted
	// transaction has none, but its reads must be explained all the same.
	Writes []string
	// Commit is the commit time, µs. For a transaction without writes it is only
	// a label.
	Commit int64
}

// Log collects transactions. Methods are safe for concurrent use; a nil Log
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

// Transactions returns what was recorded, in the order it was added.
func (l *Log) Transactions() []Transaction {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}
