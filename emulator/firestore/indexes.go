package firestoreemu

import (
	"fmt"
	"log/slog"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/index"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// IndexMode says what a server with Options.Indexes does about a query without
// an index. The server itself needs none; production does.
type IndexMode int

const (
	IndexStrict IndexMode = iota // refuse the query as production would; the default
	IndexWarn                    // log what IndexStrict would answer, and run the query
	IndexOff                     // run the query
)

// CheckIndexes returns what is wrong with the content of a firestore.indexes.json,
// or nil. Start makes the same check of Options.Indexes.
func CheckIndexes(data []byte) error {
	_, err := index.Load(data)
	return err
}

// loadIndexes reads Options.Indexes.
func (s *Server) loadIndexes() error {
	if s.opts.Indexes == nil {
		return nil
	}
	set, err := index.Load(s.opts.Indexes)
	if err != nil {
		return fmt.Errorf("firestoreemu: Indexes: %w", err)
	}
	s.indexes = set
	return nil
}

// checkIndex refuses a query that has no index, depending on the mode. aggregated
// are the fields it sums or averages.
func (s *Server) checkIndex(plan *query.Plan, aggregated []value.FieldPath) error {
	if s.indexes == nil || s.opts.IndexMode == IndexOff {
		return nil
	}
	err := s.indexes.Check(plan, aggregated)
	if err != nil && s.opts.IndexMode == IndexWarn {
		s.opts.Logger.Warn("firestore query without an index", slog.Any("err", err))
		return nil
	}
	return err
}
