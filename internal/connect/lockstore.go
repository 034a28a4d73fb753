package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// LockStore is the address of a store that keeps locks.
type LockStore struct {
	firestore Config // project and database
}

// LockStoreForms says which addresses ParseLockStore accepts.
const LockStoreForms = "firestore://PROJECT or firestore://PROJECT/DATABASE"

// ParseLockStore reads an address. Its error quotes nothing of a text that it cannot
// read, which may hold a password.
func ParseLockStore(text string) (LockStore, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "firestore" {
		return LockStore{}, errors.New("is not the address of a lock store; give " + LockStoreForms)
	}
	project, database, _ := strings.Cut(rest, "/")
	switch {
	case !projectID.MatchString(project):
		return LockStore{}, fmt.Errorf("%.80q is not a Google Cloud project id; give %s", project, LockStoreForms)
	case database != "" && database != firestore.DefaultDatabaseID && !databaseID.MatchString(database):
		return LockStore{}, fmt.Errorf("%.80q is not a Firestore database id; give %s", database, LockStoreForms)
	}
	return LockStore{firestore: Config{Project: project, Database: cmp.Or(database, firestore.DefaultDatabaseID)}}, nil
}

// Open connects to the store, or to the Firestore emulator that the environment names.
// Nothing is sent yet. Close the locks, then call stop.
func (s LockStore) Open(ctx context.Context, log *slog.Logger) (locks lock.Store, stop func() error, err error) {
	c := s.firestore
	c.FirestoreHost = os.Getenv(FirestoreHost)
	client, err := openFirestore(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	backend, err := firestorelock.New(client, firestorelock.Config{Logger: log})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return backend, client.Close, nil
}
