package firestoreemu

import (
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// database is one isolated database: its documents, locks and transactions.
type database struct {
	server       *Server
	name         string // "projects/p/databases/d"
	store        *store.DB
	locks        *locks.Table
	transactions *registry
}

// root is the parent of the database's top-level collections.
func (d *database) root() string { return d.name + "/documents" }

// database returns the database with that name, created on first use (E-RPC-04).
func (s *Server) database(name string) (*database, error) {
	s.mu.RLock()
	d := s.databases[name]
	s.mu.RUnlock()
	if d != nil {
		return d, nil
	}
	if _, err := value.ParseDatabase(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.databases[name]; d != nil {
		return d, nil
	}
	d = s.emptyDatabase(name)
	if s.file != nil {
		d.store.SaveTo(s.saver(s.file.Database(name)))
	}
	s.databases[name] = d
	return d, nil
}

// allDatabases lists the databases that exist.
func (s *Server) allDatabases() []*database {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*database, 0, len(s.databases))
	for _, d := range s.databases {
		all = append(all, d)
	}
	return all
}

// emptyDatabase returns a new database in memory.
func (s *Server) emptyDatabase(name string) *database {
	table := locks.NewTable(s.opts.Clock, locks.Limits{Wait: s.opts.Limits.LockWait, Hold: s.opts.Limits.LockHold})
	return &database{
		server:       s,
		name:         name,
		store:        store.New(store.Options{Clock: s.opts.Clock, Retention: s.opts.Retention}),
		locks:        table,
		transactions: newRegistry(name, s, table),
	}
}

// databaseUnder returns the database of a document or a root.
func (s *Server) databaseUnder(parent string) (*database, error) {
	name, err := value.ParseParent(parent)
	if err != nil {
		return nil, err
	}
	return s.database(name.DatabaseName())
}

// documentName returns an error unless name is a document of this database
// (E-ER-01).
func (d *database) documentName(name string) error {
	parsed, err := value.ParseName(name)
	if err != nil {
		return err
	}
	if parsed.DatabaseName() != d.name {
		return invalidf("mismatched database: document %q is not in %q", name, d.name)
	}
	return nil
}

// snapshotAt opens the snapshot at a read_time (E-ST-05).
func snapshotAt(db *store.DB, at *timestamppb.Timestamp) (*store.Snapshot, error) {
	if err := at.CheckValid(); err != nil {
		return nil, invalidf("invalid read_time: %v", err)
	}
	if at.GetNanos()%int32(time.Microsecond) != 0 {
		return nil, errPrecision
	}
	snapshot, err := db.At(store.Micros(at))
	return snapshot, snapshotStatus(err)
}

// project returns the document with the fields of a read mask; nil paths mean all.
func project(doc *pb.Document, paths []value.FieldPath) *pb.Document {
	if paths == nil {
		return doc
	}
	return &pb.Document{
		Name:       doc.Name,
		Fields:     value.Project(doc.Fields, paths),
		CreateTime: doc.CreateTime,
		UpdateTime: doc.UpdateTime,
	}
}
