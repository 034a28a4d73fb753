package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/input"
)

type depotsCommand struct {
	List   depotsList   `cmd:"" help:"List depots."`
	Apply  depotsApply  `cmd:"" help:"Create and change depots from a file."`
	Delete depotsDelete `cmd:"" help:"Delete a depot that is not in use."`
}

type warehousesCommand struct {
	List   warehousesList   `cmd:"" help:"List warehouses."`
	Apply  warehousesApply  `cmd:"" help:"Create and change warehouses from a file."`
	Delete warehousesDelete `cmd:"" help:"Delete a warehouse that is not in use."`
}

// placesList holds the flags of a list of places.
type placesList struct {
	desk
	page
}

type depotsList struct{ placesList }

// Check implements config.Checker.
func (c *depotsList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "depots", domain.CheckDocumentID)
}

// Run lists depots.
func (c *depotsList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return c.on(d).ListDepots(ctx, c.page.page()) })
}

type warehousesList struct{ placesList }

// Check implements config.Checker.
func (c *warehousesList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "warehouses", domain.CheckDocumentID)
}

// Run lists warehouses.
func (c *warehousesList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return c.on(d).ListWarehouses(ctx, c.page.page()) })
}

// placesChange holds the flags of a change of places.
type placesChange struct {
	desk
	Reason string `help:"Why, for the audit." required:"" placeholder:"TEXT"`
	DryRun bool   `help:"Only show what would change."`
	Yes    bool   `help:"Do not ask for confirmation on a terminal."`
}

// Check implements config.Checker.
func (c *placesChange) Check(r *config.Refuser) {
	c.desk.Check(r)
	if err := operator.CheckReason(c.Reason); err != nil {
		r.Refuse("reason", "%s", err)
	}
}

// run shows what do would change, asks on a terminal, and does it.
func (c *placesChange) run(ctx context.Context, do func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error)) error {
	return c.runPrinting(ctx, do, (*operator.Desk).PrintPlaceChanges)
}

// runPrinting is run with another way to print.
func (c *placesChange) runPrinting(ctx context.Context, do func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error),
	show func(d *operator.Desk, done []domain.PlaceChange, dryRun bool, failure error) error) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		planned, err := do(d.Commands, true)
		if err != nil {
			return err
		}
		asks := !c.DryRun && !c.Yes && isatty.IsTerminal(os.Stdin.Fd()) && operator.PlacesToChange(planned) > 0
		if c.DryRun || asks {
			if err := show(d, planned, true, nil); err != nil || c.DryRun {
				return err
			}
			if err := confirm(ctx, os.Stdin); err != nil {
				return err
			}
		}
		done, err := do(d.Commands, false)
		return show(d, done, false, err)
	})
}

// errDeclined says that the operator did not confirm.
var errDeclined = errors.New("nothing was changed: not confirmed; answer y, or give --yes")

// confirm asks the operator and returns an error unless the answer is yes.
func confirm(ctx context.Context, in io.Reader) error {
	fmt.Fprint(os.Stderr, "Do this? [y/N] ")
	line, err := cli.Input(ctx, func() ([]byte, error) { return bufio.NewReader(in).ReadBytes('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(string(line))); answer != "y" && answer != "yes" {
		return errDeclined
	}
	return nil
}

// placesFile is the file of a command that applies places.
type placesFile struct {
	placesChange
	File string `help:"YAML, GeoJSON or CSV file, by its extension or else its content; - for standard input." short:"f" required:"" placeholder:"FILE"`
}

// readPlaces returns the places of the file.
func readPlaces[P any](ctx context.Context, file string, read func(string, []byte) ([]P, error)) ([]P, error) {
	data, err := cli.ReadFile(ctx, file, placefile.MaxBytes)
	if problems, is := errors.AsType[input.Problems](err); is {
		return nil, fmt.Errorf("%s: %w", file, problems)
	} else if err != nil {
		return nil, err
	}
	return read(file, data)
}

// applyPlaces shows and applies what a file says.
func applyPlaces[P any](ctx context.Context, c placesChange, file string, read func(string, []byte) ([]P, error),
	apply func(operator.Commands, context.Context, []P, string, bool) ([]domain.PlaceChange, error)) error {
	places, err := readPlaces(ctx, file, read)
	if err != nil {
		return err
	}
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		return apply(commands, ctx, places, c.Reason, dryRun)
	})
}

type depotsApply struct{ placesFile }

// Run applies the depots of a file.
func (c *depotsApply) Run(ctx context.Context) error {
	return applyPlaces(ctx, c.placesChange, c.File, placefile.Depots, operator.Commands.ApplyDepots)
}

type warehousesApply struct{ placesFile }

// Run applies the warehouses of a file.
func (c *warehousesApply) Run(ctx context.Context) error {
	return applyPlaces(ctx, c.placesChange, c.File, placefile.Warehouses, operator.Commands.ApplyWarehouses)
}

// placesDelete holds the arguments of a command that deletes a place.
type placesDelete struct {
	placesChange
	ID string `arg:"" help:"Its id."`
}

// Check implements config.Checker.
func (c *placesDelete) Check(r *config.Refuser) {
	c.placesChange.Check(r)
	if err := domain.CheckDocumentID(c.ID); err != nil { // also of a place that another tool wrote
		r.Refuse("id", "%q %s", c.ID, err)
	}
}

type depotsDelete struct{ placesDelete }

// Run deletes a depot.
func (c *depotsDelete) Run(ctx context.Context) error {
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		done, err := commands.DeleteDepot(ctx, domain.DepotID(c.ID), c.Reason, dryRun)
		return oneChange(done), err
	})
}

type warehousesDelete struct{ placesDelete }

// Run deletes a warehouse.
func (c *warehousesDelete) Run(ctx context.Context) error {
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		done, err := commands.DeleteWarehouse(ctx, domain.WarehouseID(c.ID), c.Reason, dryRun)
		return oneChange(done), err
	})
}

// oneChange is a list with one change that was made.
func oneChange(c domain.PlaceChange) []domain.PlaceChange {
	if c.Action == "" {
		return nil
	}
	return []domain.PlaceChange{c}
}
