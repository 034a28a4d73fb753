package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// ApplyDepots makes the stored depots equal to places, one after the other, and records each
// change. Those that are already equal stay, so a caller may repeat the command. dryRun only tells
// what would change. A place that a rule refuses does not stop the others; any other failure does.
// The error is then an *ApplyError, beside the changes that were made.
//
// Cost: 2 RPCs and a read of each depot and warehouse; see firestoretx.Store.ApplyDepot for
// each that is given.
func (c Commands) ApplyDepots(ctx context.Context, places []domain.Depot, reason string, dryRun bool) ([]domain.PlaceChange, error) {
	return applyPlaces(ctx, c, places, reason, dryRun, c.Store.ApplyDepot)
}

// ApplyWarehouses does for warehouses what ApplyDepots does for depots.
//
// Cost: as ApplyDepots.
func (c Commands) ApplyWarehouses(ctx context.Context, places []domain.Warehouse, reason string, dryRun bool) ([]domain.PlaceChange, error) {
	return applyPlaces(ctx, c, places, reason, dryRun, c.Store.ApplyWarehouse)
}

func applyPlaces[P domain.Place](ctx context.Context, c Commands, places []P, reason string, dryRun bool,
	apply func(context.Context, P, firestoretx.Change) (domain.PlaceChange, error)) ([]domain.PlaceChange, error) {
	swapped, err := swapWarnings(ctx, c.Store, places)
	if err != nil {
		return nil, err
	}
	return applyAll(ctx, c, places, reason, dryRun, func(ctx context.Context, p P, change firestoretx.Change) (domain.PlaceChange, error) {
		did, err := apply(ctx, p, change)
		if did.Action != domain.PlaceUnchanged {
			did.Warning = swapped(p)
		}
		return did, err
	}, func(p P) string {
		key, _ := keyOf(p)
		return key.id
	})
}

// applyAll applies what a file holds, one after the other.
func applyAll[P any](ctx context.Context, c Commands, list []P, reason string, dryRun bool,
	apply func(context.Context, P, firestoretx.Change) (domain.PlaceChange, error), id func(P) string) (done []domain.PlaceChange, err error) {
	change, err := c.placeChange(reason, dryRun)
	if err != nil {
		return nil, err
	}
	failed := &ApplyError{dryRun: dryRun}
	for i, p := range list {
		did, err := apply(ctx, p, change)
		_, refused := policy.ReasonOf(err)
		switch {
		case refused:
			failed.Refused = append(failed.Refused, RefusedPlace{id(p), err})
		case err != nil:
			failed.ID, failed.Err = id(p), err
			for _, rest := range list[i+1:] {
				failed.NotTried = append(failed.NotTried, id(rest))
			}
			return done, failed
		default:
			done = append(done, did)
		}
	}
	if len(failed.Refused) > 0 {
		return done, failed
	}
	return done, nil
}

// placeKey names a depot or a warehouse: both may have the same id.
type placeKey struct {
	kind domain.PlaceKind
	id   string
}

// swapWarnings returns a function that warns of a place whose coordinates seem to be swapped. It
// compares the place with the others of the file and with the stored ones that the file does not
// change.
func swapWarnings[P domain.Place](ctx context.Context, store *firestoretx.Store, places []P) (func(P) string, error) {
	depots, err := store.ListDepots(ctx, firestoretx.Page{})
	if err != nil {
		return nil, err
	}
	warehouses, err := store.ListWarehouses(ctx, firestoretx.Page{})
	if err != nil {
		return nil, err
	}
	var given, kept []domain.Position
	of := map[placeKey]bool{}
	for _, p := range places {
		key, at := keyOf(p)
		given, of[key] = append(given, at), true
	}
	for _, d := range depots.Items {
		if key, at := keyOf(d); !of[key] {
			kept = append(kept, at)
		}
	}
	for _, w := range warehouses.Items {
		if key, at := keyOf(w); !of[key] {
			kept = append(kept, at)
		}
	}
	return func(p P) string {
		_, at := keyOf(p)
		others := slices.DeleteFunc(slices.Clone(given), func(other domain.Position) bool { return other == at })
		return cmp.Or(domain.SwapWarning(at, kept), domain.SwapWarning(at, others))
	}, nil
}

// ApplyError says what a command that applies a file has not applied.
type ApplyError struct {
	Refused []RefusedPlace // by a rule
	// ID is where the command stopped, Err why, and NotTried what comes after it. They are empty if
	// it tried all.
	ID       string
	Err      error
	NotTried []string
	dryRun   bool
}

// RefusedPlace is a place or a drone that a rule refuses to change.
type RefusedPlace struct {
	ID  string
	Err error
}

// maxPlacesNamed bounds the places of each kind that the text of an ApplyError names.
const maxPlacesNamed = 20

// Error implements error.
func (e *ApplyError) Error() string {
	var parts []string
	for _, r := range e.Refused[:min(len(e.Refused), maxPlacesNamed)] {
		parts = append(parts, r.Err.Error())
	}
	if more := len(e.Refused) - maxPlacesNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more are refused", more))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	if n := len(e.NotTried); n > 0 {
		named := strings.Join(e.NotTried[:min(n, maxPlacesNamed)], ", ")
		if more := n - maxPlacesNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, "not tried: "+named)
	}
	if fix := "correct it and apply all again"; e.dryRun {
		parts = append(parts, fix+"; nothing was changed")
	} else {
		parts = append(parts, fix+"; the other changes stay")
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns why the command stopped or, if it tried all, why the first place was refused.
func (e *ApplyError) Unwrap() error {
	if e.Err == nil && len(e.Refused) > 0 {
		return e.Refused[0].Err
	}
	return e.Err
}

// keyOf returns the key of a place and its position.
func keyOf[P domain.Place](p P) (placeKey, domain.Position) {
	switch p := any(p).(type) {
	case domain.Depot:
		return placeKey{domain.PlaceDepot, string(p.ID)}, p.Position
	case domain.Warehouse:
		return placeKey{domain.PlaceWarehouse, string(p.ID)}, p.Position
	}
	panic("unreachable: a place is a depot or a warehouse")
}

// PlaceChanges is the JSON form of what a command did to places or drones, or would do.
type PlaceChanges struct {
	Changes  []entity.PlaceChange `json:"changes"`
	DryRun   bool                 `json:"dryRun"`
	Refused  []FailedPlace        `json:"refused,omitempty" doc:"What a rule refuses; it does not stop the command."`
	Failed   *FailedPlace         `json:"failed,omitempty" doc:"Where the command stopped."`
	NotTried []string             `json:"notTried,omitempty" doc:"What comes after that."`
}

// FailedPlace is a place or a drone that could not be changed.
type FailedPlace struct {
	ID     string `json:"id"`
	Detail string `json:"detail"`
}

// PlaceChangesOf returns the JSON form of what was done before err.
func PlaceChangesOf(done []domain.PlaceChange, dryRun bool, err error) PlaceChanges {
	out := PlaceChanges{Changes: entity.OrEmpty(entity.Each(done, entity.OfPlaceChange)), DryRun: dryRun}
	if failed, is := errors.AsType[*ApplyError](err); is {
		for _, r := range failed.Refused {
			out.Refused = append(out.Refused, FailedPlace{r.ID, r.Err.Error()})
		}
		if failed.Err != nil {
			out.Failed, out.NotTried = &FailedPlace{failed.ID, failed.Err.Error()}, failed.NotTried
		}
	}
	return out
}

// DeleteDepot deletes a depot that is not in use and records it. It is rejected while drones live
// there, or as the last depot while orders are open.
//
// Cost: see firestoretx.Store.DeleteDepot.
func (c Commands) DeleteDepot(ctx context.Context, id domain.DepotID, reason string, dryRun bool) (domain.PlaceChange, error) {
	return deletePlace(ctx, c, domain.PlaceDepot, id, reason, dryRun, c.Store.DeleteDepot)
}

// DeleteWarehouse deletes a warehouse and records it. It is rejected while active
// missions visit it.
//
// Cost: see firestoretx.Store.DeleteWarehouse.
func (c Commands) DeleteWarehouse(ctx context.Context, id domain.WarehouseID, reason string, dryRun bool) (domain.PlaceChange, error) {
	return deletePlace(ctx, c, domain.PlaceWarehouse, id, reason, dryRun, c.Store.DeleteWarehouse)
}

func deletePlace[ID ~string](ctx context.Context, c Commands, kind domain.PlaceKind, id ID, reason string, dryRun bool,
	remove func(context.Context, ID, firestoretx.Change) (domain.PlaceChange, error)) (domain.PlaceChange, error) {
	change, err := c.placeChange(reason, dryRun)
	if err != nil {
		return domain.PlaceChange{}, err
	}
	if err := domain.CheckDocumentID(string(id)); err != nil { // also of a place that another tool wrote
		return domain.PlaceChange{}, fmt.Errorf("%s id %q %w", kind, id, err)
	}
	return remove(ctx, id, change)
}

func (c Commands) placeChange(reason string, dryRun bool) (firestoretx.Change, error) {
	return firestoretx.Change{By: c.By, Why: oneLine(reason), DryRun: dryRun}, c.checkAudit(reason)
}

// ListDepots prints one page of depots.
func (d *Desk) ListDepots(ctx context.Context, page firestoretx.Page) error {
	l, err := d.Store.ListDepots(ctx, page)
	if err != nil {
		return err
	}
	return printPage(d, "depots", noPlaces("depots"), l, entity.OfDepot, []string{"DEPOT", "NAME", "POSITION", "CAPACITY", "CHARGING SLOTS", "GROUP"}, func(x domain.Depot) []string {
		return []string{string(x.ID), x.Name, degrees(x.Position), fmt.Sprint(x.Capacity), fmt.Sprint(x.ChargingSlots), x.Group}
	})
}

// ListWarehouses prints one page of warehouses.
func (d *Desk) ListWarehouses(ctx context.Context, page firestoretx.Page) error {
	l, err := d.Store.ListWarehouses(ctx, page)
	if err != nil {
		return err
	}
	return printPage(d, "warehouses", noPlaces("warehouses"), l, entity.OfWarehouse, []string{"WAREHOUSE", "NAME", "POSITION", "PRODUCTS", "COLD STORAGE"}, func(x domain.Warehouse) []string {
		return []string{string(x.ID), x.Name, degrees(x.Position), strings.Join(x.ProductTypes, " "), flags("yes", x.ColdStorage)}
	})
}

func noPlaces(collection string) string {
	return fmt.Sprintf("No %s yet; \"%s apply -f FILE\" creates them.", collection, collection)
}

// PrintPlaceChanges prints what a command does, or would do, to places or drones. It returns
// failure, the error that the command ended with, or nil.
func (d *Desk) PrintPlaceChanges(done []domain.PlaceChange, dryRun bool, failure error) error {
	if d.JSON {
		return errors.Join(failure, d.printJSON(PlaceChangesOf(done, dryRun, failure)))
	}
	for _, c := range done {
		d.say("%s %s: %s", c.Kind, c.ID, actionText(c))
		for _, field := range c.Fields {
			d.say("  %s", field)
		}
		if c.Drones > 0 {
			d.say("  drones of this type that change with it: %d", c.Drones)
		}
		if c.Warning != "" {
			d.say("  warning: %s", c.Warning)
		}
	}
	if changes := PlacesToChange(done); dryRun && changes > 0 {
		d.say("%d would change; omit --dry-run to do it.", changes)
	} else if !dryRun {
		d.say("%d changed, %d unchanged.", changes, len(done)-changes)
	}
	return failure
}

// retired reports whether a change retired a drone, whose document stays.
func retired(c domain.PlaceChange) bool {
	return c.Kind == domain.PlaceDrone && c.Action == domain.PlaceDeleted
}

func actionText(c domain.PlaceChange) string {
	if retired(c) {
		return "retired"
	}
	return map[domain.PlaceAction]string{
		domain.PlaceCreated: "new", domain.PlaceChanged: "changed", domain.PlaceDeleted: "deleted", domain.PlaceUnchanged: "unchanged",
	}[c.Action]
}

// PlacesToChange counts the changes that are written.
func PlacesToChange(done []domain.PlaceChange) (n int) {
	for _, c := range done {
		if c.Action != domain.PlaceUnchanged {
			n++
		}
	}
	return n
}
