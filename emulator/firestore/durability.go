package firestoreemu

import (
	"errors"
	"fmt"
	"log/slog"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/store"
	"github.com/dronefleet/dronefleet/emulator/firestore/wal"
)

// SyncMode says what a commit's OK waits for, see the constants.
type SyncMode = wal.Sync

const (
	// SyncFull waits for fsync: an acknowledged commit survives a power loss.
	SyncFull = wal.Full
	// SyncOS waits for the kernel: it survives the death of the process.
	SyncOS = wal.OS
)

// recover opens the data directory and restores all databases in it.
func (s *Server) recover() error {
	if s.opts.DataDir == "" {
		return nil
	}
	file, err := wal.Open(s.opts.DataDir, s.opts.Sync)
	if err != nil {
		return fmt.Errorf("firestoreemu: DataDir %q: %w", s.opts.DataDir, err)
	}
	s.file = file
	names, err := file.Databases()
	if err == nil {
		for _, name := range names {
			var d *database
			if d, err = s.restore(name); err != nil {
				break
			}
			s.databases[name] = d
		}
	}
	if err != nil {
		s.stopLogs()
		return fmt.Errorf("firestoreemu: DataDir %q: %w", s.opts.DataDir, err)
	}
	return nil
}

// restore loads a database from the file.
func (s *Server) restore(name string) (*database, error) {
	d := s.emptyDatabase(name)
	last, err := s.file.Load(name, func(doc *pb.Document) {
		d.store.Restore(store.Change{Name: doc.GetName(), Doc: doc}, store.Micros(doc.GetUpdateTime()))
	})
	if err != nil {
		return nil, err
	}
	d.store.Resume(last)
	d.store.UseLog(s.log(name))
	return d, nil
}

func (s *Server) log(name string) store.Log {
	return tellingLog{faultyLog{s.file.Log(name), s}, s.opts}
}

// tellingLog tells the operator of the write that failed. It is the last one
// that the store tries, so this is told once; clients only read that each of
// their calls failed, and try again.
type tellingLog struct {
	store.Log
	opts Options
}

// Append appends a batch.
func (l tellingLog) Append(batch []store.Entry) error {
	err := l.Log.Append(batch)
	if err != nil && status.Code(err) != codes.Canceled {
		l.opts.Logger.Error("the embedded Firestore cannot write and keeps nothing from now on; mend the disk and start it again",
			slog.String("data_dir", l.opts.DataDir), slog.Any("err", err))
	}
	return err
}

// stopLogs finishes all log writes and closes the file. It fails when a write
// did, unless that was cut short by the server's end: nobody was told that it
// was kept, and nothing came after it.
func (s *Server) stopLogs() error {
	var errs []error
	for _, d := range s.databases {
		if err := d.store.StopLog(); err != nil && status.Code(err) != codes.Canceled {
			errs = append(errs, fmt.Errorf("firestoreemu: DataDir %q keeps nothing since a write failed: %w", s.opts.DataDir, err))
		}
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}
