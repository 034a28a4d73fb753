package firestoretx

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// enterpriseIndexes are the indexes that Terraform makes in Enterprise edition, for the embedded server: every
// field that has none of its own is exempted from those that Standard makes by itself.
func enterpriseIndexes(t *testing.T, fields map[string]map[string]bool) []byte {
	t.Helper()
	var file map[string][]map[string]any
	if err := json.Unmarshal(deploy.FirestoreIndexes, &file); err != nil {
		t.Fatal(err)
	}
	indexed := map[string]bool{}
	for _, names := range deploy.EnterpriseIndexes() {
		if len(names) == 2 {
			indexed[names[0]+"."+names[1]] = true
			continue
		}
		var of []map[string]any
		for _, name := range names[1:] {
			of = append(of, map[string]any{"fieldPath": name, "order": "ASCENDING"})
		}
		file["indexes"] = append(file["indexes"], map[string]any{"collectionGroup": names[0], "queryScope": "COLLECTION", "fields": of})
	}
	if len(indexed) < 30 {
		t.Fatalf("read %d indexes of one field", len(indexed))
	}
	for _, index := range file["indexes"] { // one that begins with a field serves conditions on it alone
		first, _ := index["fields"].([]any)
		if len(first) > 0 {
			name, _ := first[0].(map[string]any)["fieldPath"].(string)
			indexed[index["collectionGroup"].(string)+"."+name] = true
		}
	}
	file["fieldOverrides"] = slices.DeleteFunc(file["fieldOverrides"], func(o map[string]any) bool { return o["ttl"] != true })
	for collection, names := range fields {
		for name := range names {
			if !indexed[collection+"."+name] && name != expireAt && name != "" {
				file["fieldOverrides"] = append(file["fieldOverrides"], map[string]any{"collectionGroup": collection, "fieldPath": name, "indexes": []any{}})
			}
		}
	}
	content, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// F-HIS-04: with the indexes of Enterprise edition alone, which makes none by itself, every question of
// docs/auditing.md and the queries that the programs repeat have an index.
func TestEnterprise_EveryQueryHasAnIndex(t *testing.T) {
	emutest.ServeFirestore(t, firestoreemu.Options{Indexes: enterpriseIndexes(t, documentFields())})
	s := New(emutest.Clients(t).Firestore, Config{})
	page, err := os.ReadFile("../../docs/auditing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range question.FindAllStringSubmatch(string(page), -1) {
		query, _ := auditQuery(t, s.client, row)
		if _, err := query.Documents(t.Context()).GetAll(); err != nil {
			t.Errorf("%s: %v", row[1], err)
		}
	}
	ctx, now := t.Context(), time.Now()
	nothing := HistorySink{
		Events: func([]CommittedEvent) error { return nil }, Decisions: func([]domain.LedgerEntry) error { return nil },
		Refusals: func([]domain.Refusal) error { return nil }, Malformed: func(error) {},
	}
	once := func(follow func(ctx context.Context, seen func()) error) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		saw := false
		if err := follow(ctx, func() { saw = true; stop() }); !saw {
			return err
		}
		return nil
	}
	var depots []domain.DepotID
	for i := range DepotsFollowed {
		depots = append(depots, domain.DepotID(fmt.Sprint("D", i)))
	}
	for what, ask := range map[string]func() error{
		"drones of depots": func() error {
			return once(func(ctx context.Context, seen func()) error {
				return s.FollowDrones(ctx, depots, func(Sight[domain.Drone]) { seen() })
			})
		},
		"open orders of depots": func() error {
			return once(func(ctx context.Context, seen func()) error {
				return s.FollowOpenOrders(ctx, depots, func(Sight[domain.Order]) { seen() })
			})
		},
		"missions of depots": func() error {
			return once(func(ctx context.Context, seen func()) error {
				return s.FollowActiveMissions(ctx, depots, func(Sight[domain.Mission]) { seen() })
			})
		},
		"cycles of depots": func() error {
			return once(func(ctx context.Context, seen func()) error {
				return s.FollowCycles(ctx, depots, 9, func(Sight[domain.Cycle]) { seen() })
			})
		},
		"decisions of a cycle": func() error { _, err := s.ListLedger(ctx, LedgerFilter{Cycle: "C"}, Page{}); return err },
		"census":               func() error { _, err := s.Census(ctx); return err },
		"deeds of a person":    func() error { _, err := s.DeedsOf(ctx, "ann", now, now); return err },
		"deeds of anybody":     func() error { _, err := s.DeedsOf(ctx, "", now, now); return err },
		"idle depots":          func() error { _, err := s.IdleDepots(ctx, now); return err },
		"learned":              func() error { _, _, err := s.Learned(ctx); return err },
		"drones":               func() error { _, err := s.ListDrones(ctx, DroneFilter{Status: domain.DroneIdle}, Page{}); return err },
		"orders": func() error {
			_, err := s.ListOrders(ctx, OrderFilter{Status: domain.OrderPending}, Page{})
			return err
		},
		"missions":           func() error { _, err := s.ListMissions(ctx, domain.MissionActive, Page{}); return err },
		"cycles":             func() error { _, err := s.ListCycles(ctx, domain.CycleFailed, Page{}); return err },
		"misplaced stops":    func() error { _, err := s.MisplacedStops(ctx); return err },
		"owed commands":      func() error { _, err := s.OwedCommands(ctx, 0); return err },
		"events of an order": func() error { _, err := s.EventsOf(ctx, "orderId", "O-1"); return err },
		"remarkable events":  func() error { _, err := s.RemarkableEvents(ctx, now, now, 10); return err },
		"sweep":              func() error { _, err := s.Sweep(ctx, func() bool { return true }); return err },
		"deliveries": func() error {
			_, err := s.CountDeliveries(ctx, DeliveryFilter{Webhook: "W", Status: domain.DeliveryWaiting})
			return err
		},
		"history": func() error { return s.ReadHistory(ctx, now, now.Add(time.Second), nothing) },
		"ramp":    func() error { _, err := s.RampBegan(ctx, 10); return err },
	} {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
