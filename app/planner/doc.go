// Package planner decides which missions a solve cycle begins and which orders wait. It is pure:
// from a solver.Problem or a domain.Snapshot it makes a checked solver.Plan. It does no I/O; a
// clock that it is given measures how long planning takes.
//
// It looks ahead. The solver serves as many orders as it can with the drones it is given;
// on its own it would leave no drone for the next CRITICAL order. So a Planner
//
//   - plans CRITICAL orders first, nearly as if each flew alone,
//   - keeps a reserve of drones for CRITICAL orders to come; its size follows from their
//     rate and the rate of returning drones,
//   - keeps drones at advance positions, and sends idle drones there,
//   - never lets a CRITICAL order wait because of a reserve or an advance position, and no
//     other order for long,
//   - adds waiting orders to missions in flight, and moves orders that are not picked up
//     yet from one flight to another,
//   - limits the duration of routes, so that drones return as fast as they are needed,
//   - lets an order wait that would be late now and could be in time soon,
//   - serves late and long overdue orders before the rest, and gives the rest a drone at
//     least every Params.AgingStep, so that no feasible order waits for ever.
//
// # Phases
//
//   - prepare and predict (problem.go, predict.go): a snapshot becomes a problem; drones on
//     missions are predicted for the time at which drones can begin.
//   - assign (assign.go, stages.go, reserve.go): idle drones get orders.
//   - amend (amend.go, insertion.go, exchange.go, resequence.go): missions under way change.
//   - advance (advance.go, standby.go): idle drones wait where CRITICAL orders are expected.
//   - hand over (handover.go): other areas get orders that this one cannot serve in time.
//   - explain (obstacles.go, explain.go): why an order waits.
//
// # Terms
//
//   - stage: a part of the assignment, with some of the orders and some of the drones.
//   - reserve: the number of free drones kept for CRITICAL orders to come. Not the charge
//     that a drone must land with, Params.ReservePercent.
//   - advance position: a warehouse at which idle drones wait for CRITICAL orders.
//   - flight: a mission with orders that can be changed, and its drone.
//   - remaining route: the part of a flight that the drone has not flown yet.
//   - lead time: from the start of planning until the drones can begin.
//   - direct flight: one drone with one order and nothing else.
//   - urgent: of a CRITICAL order that some free drone can deliver in time.
//   - at risk: late, or about to be.
//   - obstacle: what prevents a free drone from taking an order, see Result.Obstacles.
//
// docs/glossary.md has the others.
//
// A Planner learns demand from its own cycles; a new one starts from cautious prior rates,
// or from what package learning has stored. Every order that waits has a reason in the
// plan; kept_for_critical and waits_for_better_route come from this package, the others
// from the solver.
//
// It must never import an adapter, a meter or a clock. Planning fails only when
// its context ends, or when even the greedy plan breaks a rule of the checker.
package planner
