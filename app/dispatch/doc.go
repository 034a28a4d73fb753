// Package dispatch runs solve cycles: under a fenced lock it takes a consistent
// snapshot, has it planned, checks the plan and publishes one decision per
// mission. Auditors find the cycle's record: written before it publishes,
// completed by what was published. At most one cycle of a depot runs at a time,
// and one that loses its lease publishes nothing more; should it publish late
// all the same, its fence is refused.
//
// A Planner looks beyond the instant. The solver serves as many orders as it can
// with the drones there are; doing just that leaves no drone for the CRITICAL
// order that comes next. So the planner
//
//   - plans CRITICAL orders first, nearly as if each flew alone,
//   - keeps drones for those to come: as many as the rates of CRITICAL orders
//     and of returning drones ask for, and those that stand where no drone from
//     the depot could be in time, but never for long the one that an order needs,
//   - bounds tours, so that drones come back as fast as they are needed,
//   - has orders wait which would leave late now and could be in time soon,
//   - sends what is late or long overdue before the rest, and gives the rest a
//     drone every Params.AgingStep whatever happens, so that nothing feasible
//     waits without end.
//
// What it knows of demand it has seen in its own cycles; a planner without
// memories plans by cautious guesses. Every order that stays has its reason in
// the cycle's record; kept_for_critical and waits_for_better_route are the
// planner's own. That none of the depot's drones can carry an order is said only
// after asking about all of them.
//
// It decides nothing about the fleet: decisions become missions only if the
// assignment policy agrees. It must never import the State Manager's handlers.
package dispatch
