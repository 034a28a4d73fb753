package firestoretx

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/firestore"

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

// MarkCommandPublished records that the drone was sent the message that m owes
// it. It changes no state, so it needs no transaction; publishing twice is
// harmless, forgetting to publish is not.
func (s *Store) MarkCommandPublished(ctx context.Context, m domain.Mission) error {
	updates := []firestore.Update{{Path: "commandPublishedAt", Value: s.now()}}
	if m.Command().Revoke {
		updates = []firestore.Update{
			{Path: "revokePending", Value: false},
			{Path: "revokePublishedAt", Value: s.now()},
		}
	}
	_, err := s.doc(Missions, string(m.ID)).Update(ctx, updates)
	return wrap(err, "mission %s: mark its command as published", m.ID)
}
