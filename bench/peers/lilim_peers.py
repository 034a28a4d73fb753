"""PyVRP and VROOM on the Li & Lim instances, for comparison only.

    python lilim_peers.py --solver pyvrp --time 8 DIR/*.txt > rows.json
    go run ./bench/lilim --dir DIR --rows rows.json

Prints one JSON row per instance with routes as task ids; the Go command checks
them and prints them in its own table. Distances are scaled to integers; both
solvers minimise distance, with --fixed a price per vehicle.
"""

import argparse
import json
import math
import os
import time

SCALE = 1000


def read(path):
    with open(path) as file:
        lines = [list(map(float, line.split())) for line in file if line.strip()]
    return int(lines[0][0]), int(lines[0][1]), lines[1:]


def matrix(tasks):
    return [
        [math.ceil(SCALE * math.hypot(a[1] - b[1], a[2] - b[2]) - 1e-6) for b in tasks]
        for a in tasks
    ]


def pairs(tasks):
    return [(int(t[0]), int(t[8])) for t in tasks[1:] if t[7] == 0]


def solve_pyvrp(vehicles, capacity, tasks, limit, fixed, seed):
    from pyvrp import Model
    from pyvrp.stop import MaxRuntime

    model = Model()
    places = [model.add_location(t[1], t[2]) for t in tasks]
    depot = model.add_depot(places[0], tw_early=int(tasks[0][4] * SCALE), tw_late=int(tasks[0][5] * SCALE))
    model.add_vehicle_type(
        vehicles, capacity=capacity, start_depot=depot, end_depot=depot, fixed_cost=int(fixed * SCALE),
        tw_early=int(tasks[0][4] * SCALE), tw_late=int(tasks[0][5] * SCALE))
    jobs = pairs(tasks)
    for p, d in jobs:
        model.add_shipment(
            places[p], places[d],
            pickup_tw_early=int(tasks[p][4] * SCALE), pickup_tw_late=int(tasks[p][5] * SCALE),
            pickup_service_duration=int(tasks[p][6] * SCALE),
            delivery_tw_early=int(tasks[d][4] * SCALE), delivery_tw_late=int(tasks[d][5] * SCALE),
            delivery_service_duration=int(tasks[d][6] * SCALE), amount=int(tasks[p][3]))
    rows = matrix(tasks)
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            if i != j:
                model.add_edge(a, b, distance=rows[i][j], duration=rows[i][j])
    result = model.solve(stop=MaxRuntime(limit), seed=seed, display=False)
    routes = []
    for route in result.best.routes():
        stops = []
        for activity in route:
            if activity.is_pickup():
                stops.append(jobs[activity.idx][0])
            elif activity.is_delivery():
                stops.append(jobs[activity.idx][1])
        routes.append(stops)
    return routes


def solve_vroom(vehicles, capacity, tasks, limit, fixed, seed):
    import vroom

    problem = vroom.Input()
    rows = matrix(tasks)
    problem.set_durations_matrix("car", rows)
    problem.set_costs_matrix("car", rows)
    window = [vroom.TimeWindow(int(tasks[0][4] * SCALE), int(tasks[0][5] * SCALE))]
    for v in range(vehicles):
        problem.add_vehicle(vroom.Vehicle(
            v + 1, start=0, end=0, capacity=[capacity], time_window=window[0],
            costs=vroom.VehicleCosts(fixed=int(fixed * SCALE))))
    for p, d in pairs(tasks):
        steps = [
            vroom.ShipmentStep(
                id=i, location=i, default_service=int(tasks[i][6] * SCALE),
                time_windows=[vroom.TimeWindow(int(tasks[i][4] * SCALE), int(tasks[i][5] * SCALE))])
            for i in (p, d)
        ]
        problem.add_shipment(steps[0], steps[1], amount=vroom.Amount([int(tasks[p][3])]))
    solution = problem.solve(exploration_level=5, nb_threads=2)
    routes = {}
    for step in json.loads(json.dumps(solution.to_dict()))["routes"]:
        routes[step["vehicle"]] = [s["id"] for s in step["steps"] if s["type"] in ("pickup", "delivery")]
    return list(routes.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instances", nargs="+")
    parser.add_argument("--solver", choices=["pyvrp", "vroom"], required=True)
    parser.add_argument("--time", type=float, default=8, help="seconds per instance (pyvrp)")
    parser.add_argument("--fixed", type=float, default=0, help="price of a vehicle in distance units")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    solve = solve_pyvrp if args.solver == "pyvrp" else solve_vroom
    for path in args.instances:
        began = time.time()
        routes = solve(*read(path), args.time, args.fixed, args.seed)
        print(json.dumps({
            "instance": os.path.splitext(os.path.basename(path))[0], "seed": args.seed,
            "elapsedMs": int(1000 * (time.time() - began)), "routes": routes,
        }), flush=True)


if __name__ == "__main__":
    main()
