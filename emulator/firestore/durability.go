package firestoreemu

import (
	"errors"
	"fmt"
	"log/slog"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/datafile"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// openDataDir opens the data directory and restores all databases in it.
func (s *Server) openDataDir() error {
	if s.opts.DataDir == "" {
		return nil
	}
	file, err := datafile.Open(s.opts.DataDir, s.opts.Sync == SyncFull)
	if err != nil {
		return fmt.Errorf("firestoreemu: DataDir %q: %w", s.opts.DataDir, err)
	}
	s.file = file
	restored := map[string]*database{}
	of := func(name string) *database {
		if restored[name] == nil {
			restored[name] = s.emptyDatabase(name)
		}
		return restored[name]
	}
	last, err := file.Load(func(name string, doc *pb.Document) {
		of(name).store.Restore(store.Change{Name: doc.GetName(), Doc: doc}, store.Micros(doc.GetUpdateTime()))
	})
	if err != nil {
		return errors.Join(fmt.Errorf("firestoreemu: DataDir %q: %w", s.opts.DataDir, err), file.Close())
	}
	for name, at := range last {
		d := of(name)
		d.store.Resume(at)
		d.store.SaveTo(s.saver(file.Database(name)))
		s.databases[name] = d
	}
	return nil
}

func (s *Server) saver(to store.Saver) store.Saver {
	return loggingSaver{faultySaver{to, s}, s}
}

// loggingSaver tells the operator of the first failed save. Clients see only that
// each of their commits fails.
type loggingSaver struct {
	store.Saver
	server *Server
}

// Save saves a batch.
func (l loggingSaver) Save(batch []store.Commit) error {
	err := l.Saver.Save(batch)
	if err != nil && status.Code(err) != codes.Canceled {
		l.server.unwritable.Do(func() { l.server.tellUnwritable(err) })
	}
	return err
}

func (s *Server) tellUnwritable(err error) {
	s.opts.Logger.Error("embedded Firestore cannot write its data directory and refuses all further commits; free or repair the disk, then restart",
		slog.String("data_dir", s.opts.DataDir), slog.Any("err", err))
	if s.opts.OnUnwritable != nil {
		s.opts.OnUnwritable(err)
	}
}

// closeDataDir finishes all saves and closes the file. It returns the error of a
// save that failed, unless Close itself cut it short: then no client was told
// that the commit was kept, and none came after it.
func (s *Server) closeDataDir() error {
	var errs []error
	for _, d := range s.databases {
		if err := d.store.StopSaving(); err != nil && status.Code(err) != codes.Canceled {
			errs = append(errs, fmt.Errorf("firestoreemu: DataDir %q: nothing was kept after a failed write: %w", s.opts.DataDir, err))
		}
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}
