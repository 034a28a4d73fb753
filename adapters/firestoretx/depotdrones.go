package firestoretx

import (
	"context"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// depotDrones is the field of a depot's document with its number of drones. It is not one of those
// that operators give, so a file of depots leaves it alone.
const depotDrones = "drones"

// CountDrones counts the drones in service whose home is one of the depots, and stores each number
// that is far from the depot's, see policy.CountedDrones. Drones that nobody has registered do not
// count, because anyone who may report could move the borders of areas.
//
// Cost: for each depot 3 RPCs and reads, one more read for each 1,000 drones; 1 RPC and 1 write for
// each number that is stored.
func (s *Store) CountDrones(ctx context.Context, depots []domain.Depot) error {
	for _, d := range depots {
		home := s.where(Drones, "homeDepotId", string(d.ID))
		counted := 0
		for _, part := range []struct {
			sign  int
			query firestore.Query
		}{{1, home}, {-1, home.OrderBy("retiredAt", firestore.Asc)}, {-1, home.Where("unregistered", "==", true)}} {
			n, err := count(ctx, part.query)
			if err != nil {
				return wrap(err, "drones of depot %s", d.ID)
			}
			counted += part.sign * int(n)
		}
		n := policy.CountedDrones(d.Drones, counted)
		if n == d.Drones {
			continue
		}
		_, err := s.doc(Depots, string(d.ID)).Update(ctx, []firestore.Update{{Path: depotDrones, Value: n}})
		if err != nil && status.Code(err) != codes.NotFound { // it was deleted
			return wrap(err, "drones of depot %s", d.ID)
		}
	}
	return nil
}
