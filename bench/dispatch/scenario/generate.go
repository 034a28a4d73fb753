package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/dronefleet/dronefleet/solver/model"
)

// Params choose a problem. Everything else is drawn from the seed: stock overlap
// of 30 to 90 %, batteries, drone types, order ages, bursts, scarce products.
type Params struct {
	Drones, Orders int
	// Cities is the number of towns; 0 draws it from the seed, growing with the
	// number of orders, between 1 and 50.
	Cities int
	// Geography is "accra", "berlin", "towns", "uniform" or "" for one of the first
	// three, drawn from the seed. The two real ones are used only for a single city.
	// In "uniform" the towns have no borders: all of it is spread over one disc.
	Geography string
	Seed      uint64
}

// Noon is the instant of every generated problem.
var Noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

var products = []string{"BLOOD", "VACCINE", "MEDICINE", "PLASMA", "MEDICAL_DEVICE"}

// town is the area of one city's drones, warehouses and hospitals.
type town struct {
	centre model.Location
	radius float64          // km
	sites  []model.Location // hospitals
}

// The disc of the uniform geography grows with the number of depots. By default there is
// one for every ordersPerDepot orders.
const (
	uniform        = "uniform"
	ordersPerDepot = 250
	kmPerDepot     = 9
)

type generator struct {
	*rand.Rand
	params  Params
	problem model.Problem
	towns   []town
	// depotsEach is the number of depots of each town.
	depotsEach int
}

// Generate returns the problem of the parameters.
func Generate(params Params) model.Problem {
	g := &generator{Rand: rand.New(rand.NewPCG(params.Seed, 0xd20e)), params: params, depotsEach: 1}
	g.problem.Now = Noon
	g.layOut()
	g.infrastructure()
	g.fleet()
	g.demand()
	return g.problem
}

// layOut places the towns.
func (g *generator) layOut() {
	cities := g.params.Cities
	if cities <= 0 {
		cities = 1 + g.IntN(min(50, 1+g.params.Orders/60))
	}
	kind := g.params.Geography
	if kind == "" && cities == 1 {
		kind = []string{"accra", "berlin", "towns"}[g.IntN(3)]
	}
	if cities == 1 && (kind == "accra" || kind == "berlin") {
		real, centre := accra, model.Location{Lat: 5.6, Lon: -0.15}
		if kind == "berlin" {
			real, centre = berlin, model.Location{Lat: 52.51, Lon: 13.38}
		}
		t := town{centre: centre, radius: 11}
		for _, p := range real {
			t.sites = append(t.sites, model.Location{Lat: p.lat, Lon: p.lon})
		}
		g.towns = []town{t}
		return
	}
	base := model.Location{Lat: 48 + 4*g.Float64(), Lon: 7 + 5*g.Float64()}
	if kind == uniform {
		g.layOutDisc(base)
		return
	}
	spread := 25 * math.Sqrt(float64(cities))
	for range cities {
		t := town{centre: g.near(base, spread), radius: 5 + 7*g.Float64()}
		for range 4 + g.params.Orders/cities/3 {
			t.sites = append(t.sites, g.near(t.centre, t.radius))
		}
		g.towns = append(g.towns, t)
	}
}

// layOutDisc lays out one town with many depots.
func (g *generator) layOutDisc(centre model.Location) {
	g.depotsEach = g.params.Cities
	if g.depotsEach <= 0 {
		g.depotsEach = max(1, g.params.Orders/ordersPerDepot)
	}
	t := town{centre: centre, radius: kmPerDepot * math.Sqrt(float64(g.depotsEach))}
	for range 4 + g.params.Orders/3 {
		t.sites = append(t.sites, g.near(centre, t.radius))
	}
	g.towns = []town{t}
}

// near draws a point within km of a centre.
func (g *generator) near(c model.Location, km float64) model.Location {
	angle, r := g.Float64()*2*math.Pi, math.Sqrt(g.Float64())*km/111.195
	return model.Location{Lat: c.Lat + r*math.Sin(angle), Lon: c.Lon + r*math.Cos(angle)/math.Cos(c.Lat*math.Pi/180)}
}

// infrastructure places the depots, each with three to five warehouses.
func (g *generator) infrastructure() {
	overlap := 0.3 + 0.6*g.Float64()
	for i := range len(g.towns) * g.depotsEach {
		t := g.towns[i/g.depotsEach]
		g.problem.Depots = append(g.problem.Depots, model.Depot{ID: fmt.Sprintf("DEPOT-%02d", i), At: g.near(t.centre, t.radius/2)})
		count := 3 + g.IntN(3)
		for k := range count {
			w := model.Warehouse{ID: fmt.Sprintf("WH-%02d-%d", i, k), At: g.near(t.centre, t.radius*0.9), ColdStorage: k == 0 || g.Float64() < 0.5}
			for j, product := range products {
				scarce := j == len(products)-1
				if j%count == k || !scarce && g.Float64() < overlap {
					w.ProductTypes = append(w.ProductTypes, product)
				}
			}
			g.problem.Warehouses = append(g.problem.Warehouses, w)
		}
	}
}

// fleet spreads the drones over the towns: half at the depot, the others where
// their last mission left them.
func (g *generator) fleet() {
	mixed := g.Float64() < 0.5
	for i := range g.params.Drones {
		depot := g.problem.Depots[i%len(g.problem.Depots)]
		d := model.Drone{ID: fmt.Sprintf("DRONE-%04d", i), At: depot.At, HomeDepotID: depot.ID,
			BatteryPercent: 20 + 80*math.Sqrt(g.Float64()), CapacityKg: 5}
		if g.IntN(2) == 0 {
			d.At = g.abroad(i, depot.At)
		}
		if mixed && g.IntN(3) == 0 {
			d.SpeedKmh, d.ConsumptionPercentPerKm, d.CapacityKg, d.MaxFlight = 70, 3.2, 2.5, 45*time.Minute
		}
		g.problem.Drones = append(g.problem.Drones, d)
	}
}

// abroad draws where the mission before has left a drone.
func (g *generator) abroad(drone int, depot model.Location) model.Location {
	if g.params.Geography == uniform {
		return g.near(depot, kmPerDepot)
	}
	t := g.towns[drone%len(g.towns)]
	return g.near(t.centre, t.radius)
}

// demand draws the orders; in a single town up to half of them come in bursts at
// one site.
func (g *generator) demand() {
	burst := g.Float64() * 0.5
	var hot model.Location
	for i := range g.params.Orders {
		t := g.towns[i%len(g.towns)]
		if i%17 == 0 || hot == (model.Location{}) {
			hot = t.sites[g.IntN(len(t.sites))]
		}
		at := t.sites[g.IntN(len(t.sites))]
		if len(g.towns) == 1 && g.params.Geography != uniform && g.Float64() < burst {
			at = hot
		}
		if g.IntN(3) == 0 { // clinics and patients around the town
			at = g.near(t.centre, t.radius)
		}
		o := model.Order{ID: fmt.Sprintf("ORDER-%05d", i), Delivery: at, ProductType: products[g.product()],
			WeightKg: 0.2 + 1.8*g.Float64(), ColdChain: g.IntN(5) == 0, Priority: g.priority()}
		if o.ProductType == products[len(products)-1] {
			o.ColdChain = false
		}
		age := time.Duration(float64(o.Priority.Window()) * 0.5 * g.Float64() * g.Float64())
		o.CreatedAt = Noon.Add(-age.Truncate(time.Second))
		if g.IntN(100) == 0 { // out of every drone's reach
			o.Delivery = g.near(model.Location{Lat: t.centre.Lat + 1, Lon: t.centre.Lon}, 5)
		}
		g.problem.Orders = append(g.problem.Orders, o)
	}
}

func (g *generator) product() int {
	if x := g.IntN(20); x > 0 {
		return x % (len(products) - 1)
	}
	return len(products) - 1
}

func (g *generator) priority() model.Priority {
	switch x := g.IntN(10); {
	case x < 2:
		return model.Critical
	case x < 5:
		return model.High
	}
	return model.Standard
}
