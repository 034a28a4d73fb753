// Package planner decides which missions a solve cycle begins and which orders
// wait. It is pure: it sees a solver.Problem, or a domain.Snapshot of which it
// makes one, and returns a checked solver.Plan. It reads and writes nothing, and
// its only clock is the one it is given, which measures how long planning takes.
//
// It looks ahead. The solver serves as many orders as it can with the drones it
// is given; on its own it would leave no drone for the CRITICAL order that comes
// next. So a Planner
//
//   - plans CRITICAL orders first, nearly as if each flew alone,
//   - keeps a reserve of drones for CRITICAL orders to come, as large as their
//     rate and the rate of returning drones demand,
//   - keeps drones at advance positions, and sends idle drones to positions,
//   - lets no CRITICAL order wait because of a reserve or an advance position, be it
//     in time or late, and no other order for long,
//   - adds waiting orders to drones in flight, and moves orders that are not
//     fetched between them,
//   - limits the duration of routes, so that drones return as fast as they are
//     needed,
//   - lets an order wait that would leave late now and could be in time soon,
//   - serves late and long overdue orders before the rest, and gives the rest a
//     drone at least every Params.AgingStep, so that no feasible order waits for
//     ever.
//
// # Terms
//
//   - solve cycle: one run of lock, snapshot, plan, publish, record for one
//     depot. Package dispatch runs it; a Planner does the planning in it.
//   - stage: a part of the planning of one cycle, with some of the orders and
//     some of the drones. The type lookAhead lists the stages.
//   - reserve: the number of free drones kept for CRITICAL orders to come. Not to
//     be confused with the charge that a drone must land with,
//     Params.ReservePercent.
//   - advance position: a place away from the depot from which a drone can serve
//     orders in time that no drone at the depot could.
//   - position: a warehouse at which idle drones wait for CRITICAL orders.
//   - flight: a drone on a mission with orders that can be changed; its rest is
//     what it has left to do.
//   - standing: a mission without orders that a drone flies, and its drone;
//     standby: such a mission that the plan begins or changes.
//   - leftover: an order that the area of the plan cannot serve in time; it may be
//     handed over to another area.
//   - lead time: from the start of planning until the drones can begin.
//   - direct flight: one drone with one order and nothing else.
//   - urgent: a CRITICAL order that some free drone can deliver in time.
//   - at risk: late anyway, or about to be.
//   - obstacle: what keeps a free drone from an order, see Result.Obstacles.
//
// It learns demand from its own cycles; a new Planner plans by cautious prior
// rates. Every order that waits has a reason in the plan; kept_for_critical and
// waits_for_better_route come from this package, the other reasons from the
// solver.
//
// It must never import an adapter, a meter or a clock. Planning fails only when
// its context ends, or when even the greedy plan breaks a rule of the checker.
package planner
