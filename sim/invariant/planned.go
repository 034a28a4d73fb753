package invariant

import (
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// planned checks that one area, and only one, reads each order that waits. F-ARE-04
func (c *checker) planned() {
	for _, r := range c.Readings {
		areas := map[domain.OrderID][]domain.DepotID{}
		for _, area := range slices.Sorted(maps.Keys(r.Read)) {
			for _, id := range r.Read[area] {
				areas[id] = append(areas[id], area)
			}
		}
		at := r.At.UTC().Format(time.RFC3339Nano)
		for _, id := range r.Waiting {
			c.expect(len(areas[id]) > 0, "F-ARE-04", order(id), "waits at %s and no area reads it", at)
		}
		for _, id := range slices.Sorted(maps.Keys(areas)) {
			c.expect(len(areas[id]) == 1, "F-ARE-04", order(id), "is read by the areas %v at %s", areas[id], at)
			c.expect(slices.Contains(r.Waiting, id), "F-ARE-04", order(id), "is read by %v at %s and does not wait", areas[id], at)
		}
	}
}
