package firestoretx

import (
	"context"
	"errors"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
)

// owedAtOnce bounds how many missions of each kind OwedCommands lists, as the outbox's queue does.
const owedAtOnce = 10_000

// OwedCommands lists the missions with a message for their drone: a command that was never
// published, even if the mission has ended, or a revocation. Missions younger than grace are left
// to their assigner. Beside an error it returns everything that could be read.
//
// Cost: 2 RPCs, a read per mission returned or left to others.
func (s *Store) OwedCommands(ctx context.Context, grace time.Duration) ([]domain.Mission, error) {
	owing := func(field string) ([]domain.Mission, error) {
		return collect(s.client.Collection(Missions).Where(field, "==", true).Limit(owedAtOnce).Documents(ctx), decodeOwing)
	}
	commands, err := owing("commandPending")
	errs := wrap(err, "missions whose command is pending")
	now := s.now()
	owed := slices.DeleteFunc(commands, func(m domain.Mission) bool { return now.Sub(m.StartTime) < grace })
	revoked, err := owing("revokePending")
	return append(owed, revoked...), errors.Join(errs, wrap(err, "revoked missions"))
}

func decodeOwing(snap *firestore.DocumentSnapshot) (domain.Mission, error) {
	m, err := missionCodec.decode(snap)
	m.Version = snap.UpdateTime
	return m, err
}

// MarkCommandsPublished records that owed messages were sent. A message that became due since then
// stays owed.
//
// Cost: 1 RPC for all, guarded by the published versions. If a mission was written since, it takes
// another transaction of 3 RPCs and a read for each mission.
func (s *Store) MarkCommandsPublished(ctx context.Context, missions []domain.Mission) error {
	if len(missions) == 0 {
		return nil // Firestore refuses an empty commit
	}
	//lint:ignore SA1019 one commit for all, without a transaction
	batch := s.client.Batch()
	guarded := true
	newest := map[domain.MissionID]domain.Mission{}
	for _, m := range missions {
		guarded = guarded && !m.Version.IsZero()
		if !m.Version.Before(newest[m.ID].Version) {
			newest[m.ID] = m
		}
	}
	for _, m := range newest {
		batch.Update(s.doc(Missions, string(m.ID)), s.publishedUpdates(m), firestore.LastUpdateTime(m.Version))
	}
	if guarded {
		_, err := batch.Commit(ctx)
		if code := status.Code(err); code != codes.FailedPrecondition && code != codes.NotFound {
			return wrap(err, "mark %d commands as published", len(missions))
		}
		s.conflicted(ctx)
	}
	err := s.transact(ctx, nil, func(t *txn) error { return t.markPublished(missions) })
	return wrap(err, "mark %d commands as published", len(missions))
}

// markPublished marks the missions that still owe what was published. A deleted one
// owes nothing.
func (t *txn) markPublished(published []domain.Mission) error {
	var ids []domain.MissionID
	for _, m := range published {
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	snaps, err := t.get(refs(t.store, Missions, ids)...)
	if err != nil {
		return err
	}
	for _, snap := range snaps {
		if !snap.Exists() {
			continue
		}
		stored, err := missionCodec.decode(snap)
		if err != nil {
			continue // found again once its document is corrected
		}
		if slices.ContainsFunc(published, func(m domain.Mission) bool { return m.ID == stored.ID && paid(stored, m) }) {
			if err := t.Update(snap.Ref, t.store.publishedUpdates(stored)); err != nil {
				return err
			}
		}
	}
	return nil
}

// paid reports whether the published message is the one that the stored mission owes. Commands
// differ by expiry; all revocations are alike.
func paid(stored, published domain.Mission) bool {
	if stored.Revoked() {
		return stored.Owing() && published.Command().Revoke
	}
	return stored.CommandPending && stored.CommandExpiresAt.Equal(published.CommandExpiresAt.Truncate(time.Microsecond))
}

func (s *Store) publishedUpdates(m domain.Mission) []firestore.Update {
	if m.Command().Revoke {
		return []firestore.Update{
			{Path: "commandPending", Value: false}, // left by a version without the revokePending field
			{Path: "revokePending", Value: false},
			{Path: "revokePublishedAt", Value: s.now()},
		}
	}
	return []firestore.Update{
		{Path: "commandPending", Value: false},
		{Path: "commandPublishedAt", Value: s.now()},
	}
}
