package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
)

// desk holds the flags of every operator command.
type desk struct {
	cli.Connection
	cli.Keeping
	JSON bool   `help:"Print JSON." name:"json"`
	By   string `help:"Who asks, for the audit of changes, in at most 128 characters; default this machine's user." placeholder:"NAME"`

	sealingKeys [][]byte // of webhooks' secrets
}

// Check implements config.Checker.
func (c *desk) Check(r *config.Refuser) {
	c.CheckConnection(r)
	if c.By == "" {
		return
	}
	if err := operator.CheckBy(c.By); err != nil {
		r.Refuse("by", "%s", err)
	}
}

// thisUser names the machine's user; empty if the operating system does not.
func thisUser() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		return u.Username
	}
	return u.Username + "@" + host
}

// with connects and calls f, which does the command's work.
func (c *desk) with(ctx context.Context, f func(*operator.Desk, *connect.Clients) error) error {
	return c.withLocks(ctx, cli.Locks{}, f)
}

// withLocks is with for commands about locks, whatever their store.
func (c *desk) withLocks(ctx context.Context, where cli.Locks, f func(*operator.Desk, *connect.Clients) error) (err error) {
	clients, clock, err := c.OpenWithLocks(ctx, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clients.Close()) }()
	locks, err := clients.Locks(clock, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) }()
	if c.By == "" {
		c.By = thisUser()
	}
	d := &operator.Desk{
		Commands: operator.Commands{
			Store: firestoretx.New(clients.Firestore, firestoretx.Config{Now: clock.Now, Retention: c.Retention, WebhookKeys: c.sealingKeys}), Locks: locks,
			PubSub: clients.PubSub, Patience: operator.ServicePatience, By: c.By,
		},
		Now: clock.Now, Out: cli.Stdout, JSON: c.JSON,
	}
	if clients.Config.Emulated() {
		d.Patience = 0
	}
	return inFlags(f(d, clients))
}

// inFlags names the field of an operator's error as the command line does.
func inFlags(err error) error {
	field, is := errors.AsType[*operator.FieldError](err)
	if !is {
		return err
	}
	arguments := map[string]string{"id": "id", "key": "lock key", "ids": "--id", "droneId": "--drone"}
	return fmt.Errorf("%s %w", cmp.Or(arguments[field.Field], "--"+field.Field), field.Err)
}

// output is the flag of every list.
type output struct {
	Output string `help:"Form of the list: table, json or csv. With csv, notes and cursors go to standard error." default:"table" enum:"table,json,csv"`
}

// on has a desk print a list in the form that was asked for.
func (o output) on(d *operator.Desk) *operator.Desk {
	d.JSON = d.JSON || o.Output == "json"
	d.CSV, d.Notes = o.Output == "csv" && !d.JSON, os.Stderr
	return d
}

// page holds the flags of a listing.
type page struct {
	output
	Limit  int    `help:"How many to list at most; 0 for all." default:"100" check:"min 0"`
	Cursor string `help:"nextCursor of the previous page." placeholder:"CURSOR"`
}

// checkPage refuses the cursor of another collection. check says what is wrong with the id that the
// page comes after.
func (p page) checkPage(r *config.Refuser, collection string, check func(string) error) {
	if p.Cursor == "" {
		return
	}
	if err := entity.CheckCursor(collection, p.Cursor, check); err != nil {
		r.Refuse("cursor", "%s", err)
	}
}

func (p page) page() firestoretx.Page {
	_, after := entity.ReadCursor(p.Cursor) // checked
	return firestoretx.Page{Limit: p.Limit, After: after}
}

// checkStatus refuses a status that is not in legal. An empty one is allowed.
func checkStatus[T ~string](r *config.Refuser, status T, legal []T) {
	if status != "" && !slices.Contains(legal, status) {
		r.Refuse("status", "is %q; give %s", status, config.OneOf(legal))
	}
}

type ordersCommand struct {
	List     ordersList     `cmd:"" help:"List orders."`
	Hold     ordersHold     `cmd:"" help:"Keep a pending order from every solve cycle."`
	Release  ordersRelease  `cmd:"" help:"Offer a held order to the solve cycles again."`
	Cancel   ordersCancel   `cmd:"" help:"Cancel an order that no drone carries yet."`
	Priority ordersPriority `cmd:"" help:"Give an open order another priority."`
	Deadline ordersDeadline `cmd:"" help:"Give an open order another deadline."`
	Pin      ordersPin      `cmd:"" help:"Let only one drone take an open order."`
	Unpin    ordersUnpin    `cmd:"" help:"Let any drone take a pinned order again."`
	Forbid   ordersForbid   `cmd:"" help:"Keep a drone from taking an open order."`
	Allow    ordersAllow    `cmd:"" help:"Let a forbidden drone take an order again."`
}

type ordersList struct {
	desk
	page
	Status domain.OrderStatus `help:"Only orders of this status." placeholder:"STATUS"`
	Held   bool               `help:"Only orders that wait for an operator."`
}

// Check implements config.Checker.
func (c *ordersList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "orders", domain.CheckDocumentID) // a page may end with the id of a malformed document
	checkStatus(r, c.Status, domain.OrderStatuses)
}

// Run lists orders.
func (c *ordersList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return c.on(d).ListOrders(ctx, firestoretx.OrderFilter{Status: c.Status, Held: c.Held}, c.page.page())
	})
}

// change holds the arguments of a change to one entity.
type change struct {
	desk
	ID     string `arg:"" help:"Its id."`
	Reason string `help:"Why, for the audit." required:"" placeholder:"TEXT"`
}

// Check implements config.Checker.
func (c *change) Check(r *config.Refuser) {
	c.desk.Check(r)
	checkID(r, c.ID)
	if err := operator.CheckReason(c.Reason); err != nil {
		r.Refuse("reason", "%s", err)
	}
}

// checkID refuses an argument that cannot be an entity's id.
func checkID(r *config.Refuser, id string) {
	if err := domain.CheckID(id); err != nil {
		r.Refuse("id", "%q %s", id, err)
	}
}

type ordersHold struct{ change }

// Run holds an order.
func (c *ordersHold) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintOrder(d.HoldOrder(ctx, domain.OrderID(c.ID), c.Reason))
	})
}

type ordersRelease struct{ change }

// Run releases an order.
func (c *ordersRelease) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintOrder(d.ReleaseOrder(ctx, domain.OrderID(c.ID), c.Reason))
	})
}

type ordersCancel struct{ change }

// Run cancels an order.
func (c *ordersCancel) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintOrder(d.CancelOrder(ctx, domain.OrderID(c.ID), c.Reason))
	})
}

type ordersPriority struct {
	change
	Priority string `help:"STANDARD, HIGH or CRITICAL." required:"" placeholder:"PRIORITY"`
}

// Check implements config.Checker.
func (c *ordersPriority) Check(r *config.Refuser) {
	c.change.Check(r)
	if _, ok := domain.ParsePriority(c.Priority); !ok {
		r.Refuse("priority", "is %q; give %s", c.Priority, config.OneOf(domain.Priorities[:]))
	}
}

// Run changes an order's priority.
func (c *ordersPriority) Run(ctx context.Context) error {
	p, _ := domain.ParsePriority(c.Priority) // Check refuses others
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintUrgency(d.SetPriority(ctx, domain.OrderID(c.ID), p, c.Reason))
	})
}

type ordersDeadline struct {
	change
	Deadline time.Time `help:"Latest useful delivery, in the future, such as 2026-11-21T12:00:00Z." required:"" placeholder:"TIME"`
}

// Run changes an order's deadline.
func (c *ordersDeadline) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintUrgency(d.SetDeadline(ctx, domain.OrderID(c.ID), c.Deadline, c.Reason))
	})
}

// changeForDrone is a change of an order that names a drone.
type changeForDrone struct {
	change
	Drone string `help:"The drone." required:"" placeholder:"DRONE"`
}

// Check implements config.Checker.
func (c *changeForDrone) Check(r *config.Refuser) {
	c.change.Check(r)
	if err := domain.CheckID(c.Drone); err != nil {
		r.Refuse("drone", "%q %s", c.Drone, err)
	}
}

type ordersPin struct{ changeForDrone }

// Run pins an order to a drone.
func (c *ordersPin) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintAllowed(d.PinOrder(ctx, domain.OrderID(c.ID), domain.DroneID(c.Drone), c.Reason))
	})
}

type ordersUnpin struct{ change }

// Run ends a pin.
func (c *ordersUnpin) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintAllowed(d.UnpinOrder(ctx, domain.OrderID(c.ID), c.Reason))
	})
}

type ordersForbid struct{ changeForDrone }

// Run forbids a drone.
func (c *ordersForbid) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintAllowed(d.ForbidDrone(ctx, domain.OrderID(c.ID), domain.DroneID(c.Drone), c.Reason))
	})
}

type ordersAllow struct{ changeForDrone }

// Run allows a forbidden drone again.
func (c *ordersAllow) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintAllowed(d.AllowDrone(ctx, domain.OrderID(c.ID), domain.DroneID(c.Drone), c.Reason))
	})
}

type dronesCommand struct {
	List     dronesList     `cmd:"" help:"List drones."`
	Show     dronesShow     `cmd:"" help:"Show how one drone is registered, and what is due."`
	Apply    dronesApply    `cmd:"" help:"Register drones and change registrations from a file."`
	Delete   dronesDelete   `cmd:"" help:"Retire a drone; its document stays."`
	Maintain dronesMaintain `cmd:"" help:"Record that an item of a drone was maintained."`
	Clear    dronesClear    `cmd:"" help:"Clear a drone's latched emergency."`
	Ground   dronesGround   `cmd:"" help:"Give a drone no new missions; it finishes the one it flies."`
	Release  dronesRelease  `cmd:"" help:"Let a grounded drone take missions again."`
}

type dronesList struct {
	desk
	page
	Status domain.DroneStatus `help:"Only drones of this status." placeholder:"STATUS"`
	Legacy bool               `help:"Only drones of an earlier version, which nobody has registered; reads all drones."`
}

// Check implements config.Checker.
func (c *dronesList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "drones", domain.CheckDocumentID)
	checkStatus(r, c.Status, domain.DroneStatuses)
}

// Run lists drones.
func (c *dronesList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return c.on(d).ListDrones(ctx, firestoretx.DroneFilter{Status: c.Status, Legacy: c.Legacy}, c.page.page())
	})
}

type dronesClear struct{ change }

// Run clears a drone's emergency.
func (c *dronesClear) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintCleared(d.ClearDrone(ctx, domain.DroneID(c.ID), c.Reason))
	})
}

type dronesGround struct{ change }

// Run grounds a drone.
func (c *dronesGround) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintDrone(d.GroundDrone(ctx, domain.DroneID(c.ID), c.Reason))
	})
}

type dronesRelease struct{ change }

// Run releases a grounded drone.
func (c *dronesRelease) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintDrone(d.ReleaseDrone(ctx, domain.DroneID(c.ID), c.Reason))
	})
}

type missionsCommand struct {
	List   missionsList   `cmd:"" help:"List missions."`
	Recall missionsRecall `cmd:"" help:"Make a drone give up its mission once nothing is aboard."`
}

type missionsList struct {
	desk
	page
	Status domain.MissionStatus `help:"Only missions of this status." placeholder:"STATUS"`
}

// Check implements config.Checker.
func (c *missionsList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "missions", domain.CheckDocumentID)
	checkStatus(r, c.Status, domain.MissionStatuses)
}

// Run lists missions.
func (c *missionsList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return c.on(d).ListMissions(ctx, c.Status, c.page.page())
	})
}

type missionsRecall struct{ change }

// Run recalls a mission.
func (c *missionsRecall) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintMission(d.RecallMission(ctx, domain.MissionID(c.ID), c.Reason))
	})
}

type alertsCommand struct {
	Acknowledge alertsAcknowledge `cmd:"" help:"Record that you have taken note of an alert."`
}

type alertsAcknowledge struct {
	desk
	ID     string `arg:"" help:"Id of the alert, as the stream shows it."`
	Reason string `help:"Why, for the audit." required:"" placeholder:"TEXT"`
}

// Check implements config.Checker.
func (c *alertsAcknowledge) Check(r *config.Refuser) {
	c.desk.Check(r)
	if err := domain.CheckAlertID(c.ID); err != nil {
		r.Refuse("id", "%s", err)
	}
	if err := operator.CheckReason(c.Reason); err != nil {
		r.Refuse("reason", "%s", err)
	}
}

// Run acknowledges an alert.
func (c *alertsAcknowledge) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return d.PrintAck(d.AcknowledgeAlert(ctx, c.ID, c.Reason))
	})
}
