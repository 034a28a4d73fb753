package firestoretx

import (
	"context"
	"errors"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/domain"
)

// OwedCommands lists the missions whose drone is owed a message: active ones
// whose command was never published and failed ones to be revoked. Active ones
// that were assigned less than grace ago are left to whoever assigned them.
func (s *Store) OwedCommands(ctx context.Context, grace time.Duration) ([]domain.Mission, error) {
	active, err := s.Missions(ctx, domain.MissionActive, Page{})
	if err != nil {
		return nil, err
	}
	now := s.now()
	owed := slices.DeleteFunc(active, func(m domain.Mission) bool {
		return !m.CommandPublishedAt.IsZero() || now.Sub(m.StartTime) < grace
	})
	revoked, err := collect(s.client.Collection(Missions).Where("revokePending", "==", true).Documents(ctx), decodeMission)
	if err != nil {
		return nil, wrap(err, "revoked missions")
	}
	return append(owed, revoked...), nil
}

// MarkCommandsPublished records that the drones were sent the messages that
// their missions owed them. It changes no state, so it needs no transaction;
// publishing twice is harmless, forgetting to publish is not.
//
// Cost: 1 RPC for all; one each when some mission's document is gone.
func (s *Store) MarkCommandsPublished(ctx context.Context, missions []domain.Mission) error {
	//lint:ignore SA1019 one commit for all, without a transaction
	batch := s.client.Batch()
	for _, m := range missions {
		batch.Update(s.doc(Missions, string(m.ID)), s.publishedUpdates(m))
	}
	_, err := batch.Commit(ctx)
	if st, ok := statusOf(err); !ok || st.Code() != codes.NotFound {
		return wrap(err, "mark %d commands as published", len(missions))
	}
	var errs []error
	for _, m := range missions {
		_, err := s.doc(Missions, string(m.ID)).Update(ctx, s.publishedUpdates(m))
		if st, ok := statusOf(err); ok && st.Code() == codes.NotFound {
			continue // nothing is left to be owed
		}
		errs = append(errs, wrap(err, "mission %s: mark its command as published", m.ID))
	}
	return errors.Join(errs...)
}

func (s *Store) publishedUpdates(m domain.Mission) []firestore.Update {
	if m.Command().Revoke {
		return []firestore.Update{
			{Path: "revokePending", Value: false},
			{Path: "revokePublishedAt", Value: s.now()},
		}
	}
	return []firestore.Update{{Path: "commandPublishedAt", Value: s.now()}}
}
