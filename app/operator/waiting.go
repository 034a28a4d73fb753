package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

// waitsOf reads why orders wait, if any does. It reads once for all of them.
//
// Cost: see firestoretx.Store.Waits.
func (c Commands) waitsOf(ctx context.Context, orders ...domain.Order) (waits domain.Waits, malformed []error, err error) {
	if !slices.ContainsFunc(orders, domain.Order.Waits) {
		return waits, nil, nil
	}
	return c.Store.Waits(ctx)
}

// maxDepotsNamed is how many depots a line names.
const maxDepotsNamed = 3

// whenSeen says which cycles the column WAITS comes from.
func (d *Desk) whenSeen(waits domain.Waits) []string {
	depots := waits.Depots()
	if len(depots) == 0 {
		return nil
	}
	var seen []string
	for _, w := range depots[:min(len(depots), maxDepotsNamed)] {
		seen = append(seen, "depot "+string(w.DepotID)+" "+cmp.Or(d.ago(w.SnapshotTime), "never"))
	}
	if more := len(depots) - len(seen); more > 0 {
		seen = append(seen, fmt.Sprintf("%d more", more))
	}
	return []string{fmt.Sprintf("WAITS is what the last cycles saw: %s. \"audit order\" shows each depot.", strings.Join(seen, ", "))}
}

// sayWaits says why an order waits, a line for each depot.
func (d *Desk) sayWaits(waits []domain.Wait) {
	for _, w := range waits {
		switch {
		case w.DepotID == "":
			d.say("  waits: %s", w)
		case w.CycleID == "":
			d.say("  waits: depot %s: %s", w.DepotID, w)
		default:
			d.say("  waits: depot %s: %s", w.DepotID, w)
			alike := ""
			if w.WithoutOrders > 0 {
				alike = fmt.Sprintf(", the latest recorded of %d cycles without orders", w.WithoutOrders)
			}
			d.say("    by cycle %s of %s UTC, %s%s", w.CycleID, stamp(w.SnapshotTime), d.ago(w.SnapshotTime), alike)
		}
	}
}
