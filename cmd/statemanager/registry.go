package main

import (
	"context"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
)

type dronesShow struct {
	desk
	ID string `arg:"" help:"Its id."`
}

// Check implements config.Checker.
func (c *dronesShow) Check(r *config.Refuser) {
	c.desk.Check(r)
	checkID(r, c.ID)
}

// Run shows a drone.
func (c *dronesShow) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.ShowDrone(ctx, domain.DroneID(c.ID)) })
}

// registryFile is the file of a command that applies drones or their types.
type registryFile struct {
	placesChange
	File string `help:"YAML or CSV file, by its extension or else its content; - for standard input." short:"f" required:"" placeholder:"FILE"`
}

type dronesApply struct{ registryFile }

// Run applies the drones of a file.
func (c *dronesApply) Run(ctx context.Context) error {
	return applyPlaces(ctx, c.placesChange, c.File, placefile.Drones, operator.Commands.ApplyDrones)
}

type dronesDelete struct{ placesDelete }

// Run retires a drone.
func (c *dronesDelete) Run(ctx context.Context) error {
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		done, err := commands.RetireDrone(ctx, domain.DroneID(c.ID), c.Reason, dryRun)
		return oneChange(done), err
	})
}

type dronesMaintain struct {
	placesDelete
	Item string `help:"What was maintained, one of the drone's due items." required:"" placeholder:"ITEM"`
}

// Check implements config.Checker.
func (c *dronesMaintain) Check(r *config.Refuser) {
	c.placesDelete.Check(r)
	if err := domain.CheckID(c.Item); err != nil {
		r.Refuse("item", "%q %s", c.Item, err)
	}
}

// Run records maintenance.
func (c *dronesMaintain) Run(ctx context.Context) error {
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		done, err := commands.MaintainDrone(ctx, domain.DroneID(c.ID), c.Item, c.Reason, dryRun)
		return oneChange(done), err
	})
}

type droneTypesCommand struct {
	List   droneTypesList   `cmd:"" help:"List types of drones."`
	Apply  droneTypesApply  `cmd:"" help:"Create and change types of drones from a file."`
	Delete droneTypesDelete `cmd:"" help:"Delete a type that no drone in service has."`
}

type droneTypesList struct{ placesList }

// Check implements config.Checker.
func (c *droneTypesList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "droneTypes", domain.CheckDocumentID)
}

// Run lists types of drones.
func (c *droneTypesList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return c.on(d).ListDroneTypes(ctx, c.page.page()) })
}

type droneTypesApply struct{ registryFile }

// Run applies the types of drones of a file.
func (c *droneTypesApply) Run(ctx context.Context) error {
	return applyPlaces(ctx, c.placesChange, c.File, placefile.DroneTypes, operator.Commands.ApplyDroneTypes)
}

type droneTypesDelete struct{ placesDelete }

// Run deletes a type of drones.
func (c *droneTypesDelete) Run(ctx context.Context) error {
	return c.run(ctx, func(commands operator.Commands, dryRun bool) ([]domain.PlaceChange, error) {
		done, err := commands.DeleteDroneType(ctx, domain.DroneTypeID(c.ID), c.Reason, dryRun)
		return oneChange(done), err
	})
}
