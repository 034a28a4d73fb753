package devrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	webconsole "github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/solver"
)

// Config describes the fleet to run and for how long.
type Config struct {
	Duration        time.Duration  // machine time; 0 until the context ends
	Drones          int            // size of the fleet
	Depots          []domain.Depot // none for Paris, as are Warehouses
	Warehouses      []domain.Warehouse
	ChargingSlots   int           // of the depot; 0 for as many as there are drones
	ChargeRate      float64       // of the drones, percent of a full charge a simulated minute; 0 for the usual
	Pace            float64       // at which drones fly, as a share of the speed that plans assume; 0 for all of it
	NoLearning      bool          // plan as if the fleet had no past
	NoAdvance       bool          // leave idle drones where they are
	Hz              float64       // telemetry per drone and simulated second
	OrdersPerMinute float64       // of simulated time; 0 for none, not even at the beginning
	Speed           float64       // simulated seconds per second
	Seed            uint64        // repeats the world's choices
	SolveLimit      time.Duration // machine time per cycle
	Iterations      int           // steps of each cycle's search, instead of SolveLimit
	Strategy        solver.Strategy
	FirestoreAddr   string // where the embedded servers listen; "" for a free port
	PubSubAddr      string
	HTTPAddr        string              // where the HTTP API listens; "" for none
	HTTPHosts       []httpapi.Host      // by which the HTTP API may be reached, besides localhost
	BaseMap         *webconsole.BaseMap // below the fleet on the console's map; nil for none
	LinkAddr        string              // where drones connect; "" for no gateway
	DataDir         string              // keeps the fleet across runs; "" for memory only
	GameDay         GameDay
	Operator        bool      // whoever opens the console is an operator; HTTPAddr must be a loopback address
	In              io.Reader // a terminal, where a person chooses incidents; nil for none
	Drill           GatewayDrill
	DrainTimeout    time.Duration // how long the end waits for the backlog; 0 for 30 s

	// Watch, if set, is called with the meter before anything runs. It exports the metrics
	// and returns the provider of tracers.
	Watch          func(context.Context, *meter.Meter) (trace.TracerProvider, error)
	TraceTelemetry float64 // share of telemetry that is traced

	Out      io.Writer // status and summary
	Terminal bool      // Out redraws lines
	Log      *slog.Logger
}

// Validate names every setting that is out of range.
func (c Config) Validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(c.Drones < 0 || c.Drones > 100_000, "--drones is %d; give 0 to 100000", c.Drones)
	refuse(!(c.Hz > 0 && c.Hz <= 100), "--hz is %v; give more than 0, at most 100", c.Hz)
	refuse(!(c.OrdersPerMinute >= 0 && c.OrdersPerMinute <= 60_000), "--orders-per-minute is %v; give 0 to 60000", c.OrdersPerMinute)
	refuse(!(c.Speed >= 1 && c.Speed <= 1000), "--speed is %v; give 1 to 1000", c.Speed)
	refuse((len(c.Depots) == 0) != (len(c.Warehouses) == 0), "--places has %d depots and %d warehouses; give some of both", len(c.Depots), len(c.Warehouses))
	refuse(c.Duration < 0, "--duration is %s; give a positive time, or 0 to run until interrupted", c.Duration)
	c.GameDay.Check(c.simulated(), func(setting, format string, args ...any) {
		refuse(true, "--%s %s", setting, fmt.Sprintf(format, args...))
	})
	if c.Operator {
		err := CheckOperator(c.HTTPAddr, c.HTTPHosts)
		refuse(err != nil, "--operator %s", err)
	}
	refuse(c.ChargingSlots < 0, "--charging-slots is %d; give 1 or more, or leave it out", c.ChargingSlots)
	refuse(!(c.ChargeRate >= 0 && c.ChargeRate <= 100_000), "--charge-rate is %v; give more than 0, at most 100000", c.ChargeRate)
	refuse(!(c.Pace >= 0 && c.Pace <= 2), "--pace is %v; give more than 0, at most 2", c.Pace)
	refuse(c.SolveLimit <= 0, "--solve-limit is %s; give a positive time", c.SolveLimit)
	return errors.Join(errs...)
}

// simulated is the duration in simulated time.
func (c Config) simulated() time.Duration { return time.Duration(float64(c.Duration) * c.Speed) }

// charging is how the fleet charges.
func (c Config) charging() charging {
	return charging{c.ChargingSlots, cmp.Or(c.ChargeRate, fleetsim.ChargePerMinute)}
}

// tracing returns the provider of the run's tracers.
func (c Config) tracing(ctx context.Context, m *meter.Meter) (trace.TracerProvider, error) {
	if c.Watch == nil {
		return noop.NewTracerProvider(), nil
	}
	return c.Watch(ctx, m)
}

// servers are the two embedded servers.
type servers struct {
	firestore *firestoreemu.Server
	pubsub    *pubsubemu.Server
}

func (s servers) close() error { return errors.Join(s.firestore.Close(), s.pubsub.Close()) }
