"""OR-Tools on generated dispatch instances, for comparison only.

    go run ./bench/dispatch --drones 100 --orders 500 --instances 5 --dump DIR
    python ortools_dispatch.py [--fair] [--cpu] --time 8 DIR/*.json

Prints one JSON row per instance: orders dropped, metres, longest route and the
reference scalar (metres + 100 x longest + 200 000 per order dropped). The time
limit is wall time: where cpuMs is far below elapsedMs the machine was busy, and
the row is not fair; --cpu repeats such a run with more time. Our bench compares its own runs with these rows:

    go run ./bench/dispatch --drones 100 --orders 500 --reference --rivals ROWS

The reference form fixes each order's nearest warehouse, with a penalty of
100 000 per dropped node and a span cost of 100. The fair form (--fair) offers up
to three warehouses per order, with a penalty of 1e8 and a span cost of 1.
"""

import argparse
import json
import math
import time
from datetime import datetime
from pathlib import Path

from ortools.constraint_solver import pywrapcp, routing_enums_pb2

WINDOW = {0: 3600, 1: 1800, 2: 900}  # seconds by priority


def metres(a, b):
    rad = math.pi / 180
    lat = math.sin((b["lat"] - a["lat"]) * rad / 2)
    lon = math.sin((b["lon"] - a["lon"]) * rad / 2)
    h = lat * lat + math.cos(a["lat"] * rad) * math.cos(b["lat"] * rad) * lon * lon
    return 2 * 6371000 * math.asin(math.sqrt(h))


def stamp(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def sources(problem, order, limit):
    found = [
        w["at"]
        for w in problem["warehouses"]
        if order["productType"] in w["productTypes"]
        and (not order.get("coldChain") or w.get("coldStorage"))
    ]
    found.sort(key=lambda at: metres(at, order["delivery"]))
    return found[:limit]


def solve(problem, limit, fair):
    now = stamp(problem["now"])
    depots = {d["id"]: d["at"] for d in problem["depots"]}
    # The leg home of an unused vehicle counts in its dimensions: leave out the drones
    # that could not fly it.
    drones = [
        d for d in problem["drones"]
        if (d["batteryPercent"] - 20) / d.get("consumptionPercentPerKm", 2.5) * 1000
        > metres(d["at"], depots[d["homeDepotId"]])
    ]
    speed = [d.get("speedKmh", 50) / 3.6 for d in drones]
    reach = [(d["batteryPercent"] - 20) / d.get("consumptionPercentPerKm", 2.5) * 1000 for d in drones]
    flight = [d.get("maxFlight", 0) / 1e9 or 1e9 for d in drones]

    points, starts, ends, jobs = [], [], [], []
    for d in drones:
        starts.append(len(points))
        points.append(d["at"])
        ends.append(len(points))
        points.append(depots[d["homeDepotId"]])
    impossible = 0
    for order in problem["orders"]:
        places = sources(problem, order, 3 if fair else 1)
        due = stamp(order["createdAt"]) + WINDOW[order["priority"]] - now
        able = in_time = False
        for d, s, r, f in zip(drones, speed, reach, flight):
            for place in places:
                there = metres(d["at"], place) + metres(place, order["delivery"])
                total = there + metres(order["delivery"], depots[d["homeDepotId"]])
                if total <= r and total / s <= f:
                    able = True
                    in_time |= there / s <= due
        if not able:
            impossible += 1
            continue
        # Each place gets its own copy of the delivery; at most one is visited.
        copies = []
        for place in places:
            copies.append((len(points), len(points) + 1))
            points += [place, order["delivery"]]
        jobs.append((copies, due if in_time else None, order["weightKg"]))

    n = len(points)
    dist = [[int(metres(a, b)) for b in points] for a in points]
    manager = pywrapcp.RoutingIndexManager(n, len(drones), starts, ends)
    routing = pywrapcp.RoutingModel(manager)

    # Matrices and vectors, not callbacks: OR-Tools would call Python for every arc
    # that it looks at, and search several times less in the same time.
    transit = routing.RegisterTransitMatrix(dist)
    routing.SetArcCostEvaluatorOfAllVehicles(transit)
    routing.AddDimensionWithVehicleCapacity(transit, 0, [int(r) for r in reach], True, "distance")
    routing.GetDimensionOrDie("distance").SetGlobalSpanCostCoefficient(1 if fair else 100)

    timers = {s: routing.RegisterTransitMatrix([[int(d / s) for d in row] for row in dist]) for s in set(speed)}
    routing.AddDimensionWithVehicleTransitAndCapacity(
        [timers[s] for s in speed], 0, [int(min(f, 1e6)) for f in flight], True, "time")
    demand = [0] * n
    for copies, _, weight in jobs:
        for pickup, delivery in copies:
            demand[pickup], demand[delivery] = math.ceil(weight * 1000), -math.ceil(weight * 1000)
    load = routing.RegisterUnaryTransitVector(demand)
    routing.AddDimensionWithVehicleCapacity(
        load, 0, [int(d.get("capacityKg", 1000) * 1000) for d in drones], True, "load")

    solver, times = routing.solver(), routing.GetDimensionOrDie("time")
    penalty = 100_000_000 if fair else 100_000
    for copies, due, _ in jobs:
        for pickup, delivery in copies:
            p, d = manager.NodeToIndex(pickup), manager.NodeToIndex(delivery)
            routing.AddPickupAndDelivery(p, d)
            solver.Add(routing.VehicleVar(p) == routing.VehicleVar(d))
            solver.Add(times.CumulVar(p) <= times.CumulVar(d))
            if due is not None:
                times.CumulVar(d).SetMax(max(0, int(due)))
        routing.AddDisjunction([manager.NodeToIndex(p) for p, _ in copies], penalty)
        routing.AddDisjunction([manager.NodeToIndex(d) for _, d in copies], penalty)

    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PARALLEL_CHEAPEST_INSERTION
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    parameters.time_limit.FromMilliseconds(int(limit * 1000))
    began, used = time.time(), time.process_time()
    solution = routing.SolveWithParameters(parameters)
    elapsed, used = time.time() - began, time.process_time() - used

    total = longest = served = 0
    if solution:
        for v in range(len(drones)):
            index, length, stops = routing.Start(v), 0, 0
            while not routing.IsEnd(index):
                following = solution.Value(routing.NextVar(index))
                length += dist[manager.IndexToNode(index)][manager.IndexToNode(following)]
                stops += 1
                index = following
            if stops > 1:
                total, longest, served = total + length, max(longest, length), served + (stops - 1) // 2
    dropped = len(problem["orders"]) - served
    return {
        "solver": "ortools-fair" if fair else "ortools-reference",
        "dropped": dropped, "impossible": impossible, "metres": total, "longest": longest,
        "referenceScalar": total + 100 * longest + 200_000 * dropped, "elapsedMs": int(elapsed * 1000),
        "cpuMs": int(used * 1000),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instances", nargs="+")
    parser.add_argument("--time", type=float, default=8, help="seconds per instance")
    parser.add_argument("--fair", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="on a busy machine: repeat with more wall time until the solver had --time seconds of processor time")
    args = parser.parse_args()
    for path in args.instances:
        with open(path) as file:
            problem = json.load(file)
        row = {
            "instance": int(Path(path).stem.rsplit("-", 1)[1]),
            "drones": len(problem["drones"]), "orders": len(problem["orders"]),
        }
        limit = args.time
        result = solve(problem, limit, args.fair)
        while args.cpu and result["cpuMs"] < 950 * args.time:
            limit *= 1000 * args.time / max(1, result["cpuMs"])
            result = solve(problem, limit, args.fair)
        print(json.dumps(row | result), flush=True)


if __name__ == "__main__":
    main()
