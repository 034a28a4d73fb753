"""OR-Tools, PyVRP and VROOM on generated dispatch problems, for comparison only.

    go run ./bench/dispatch --drones 1000 --orders 5000 --geography uniform --instances 2 --dump DIR
    python dispatch_peers.py --solver vroom --time 8 --cluster 400 DIR/*.json > vroom.json
    go run ./bench/dispatch --drones 1000 --orders 5000 --geography uniform --instances 2 --rivals vroom.json

Prints one JSON row per problem with the stops of every drone. The Go command flies
them, has its checker judge them and counts what they leave out.

Each solver gets the problem in the best form that it knows: distance as cost, the
battery as a limit of distance, the flight time, capacity, deadlines, and a prize for
each order, higher by far for a more urgent one. OR-Tools chooses among the three
most promising warehouses of an order: near the delivery, and near some drone. Shipments
of PyVRP and VROOM have one pickup, at the most promising. Orders that no drone could
deliver in time are left out: they would only be in the way.

--cluster N cuts what is around each depot into parts of at most N orders along the longer
side, with the drones nearest to each, in proportion to its orders. The parts are solved by
--workers processes. All together get --time seconds of --workers processors: the
parts share that by their orders, in processor time. Reading a problem and building
the models does not count.
"""

import argparse
import json
import math
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

WINDOW = {0: 3600, 1: 1800, 2: 900}  # seconds by priority
PRIZE = {0: 100_000, 1: 1_000_000, 2: 10_000_000}  # in metres; no drone flies further than 32 000
RANK = {0: 1, 1: 10, 2: 100}  # VROOM's priorities are at most 100
DECI = 10  # time is in tenths of a second
GRAMS = 1000


def metres(a, b):
    """Distances between two lists of places, rounded up: no route is shorter than it seems."""
    a, b = np.radians([[p["lat"], p["lon"]] for p in a]), np.radians([[p["lat"], p["lon"]] for p in b])
    lat = np.sin((a[:, None, 0] - b[None, :, 0]) / 2)
    lon = np.sin((a[:, None, 1] - b[None, :, 1]) / 2)
    h = lat**2 + np.cos(a[:, None, 0]) * np.cos(b[None, :, 0]) * lon**2
    return np.ceil(2 * 6371000 * np.arcsin(np.minimum(1, np.sqrt(h)))).astype(np.int64)


def stamp(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Drone:
    def __init__(self, d, depots):
        self.id, self.at, self.home = d["id"], d["at"], depots[d["homeDepotId"]]
        self.speed = d.get("speedKmh", 50) / 3.6
        self.reach = int((d["batteryPercent"] - 20) / d.get("consumptionPercentPerKm", 2.5) * 1000)
        self.flight = d.get("maxFlight", 0) / 1e9 or 1e5
        self.grams = int(d.get("capacityKg", 1000) * GRAMS)


class Part:
    """Some drones and orders, and the places around them."""

    def __init__(self, problem, drones, orders, choices):
        now = stamp(problem["now"])
        self.warehouses = problem["warehouses"]
        self.drones = drones
        ids = {}
        self.places = []

        def place(at):
            key = (at["lat"], at["lon"])
            if key not in ids:
                ids[key] = len(self.places)
                self.places.append(at)
            return ids[key]

        self.starts, self.ends = [place(d.at) for d in drones], [place(d.home) for d in drones]
        stores = [place(w["at"]) for w in self.warehouses]
        drops = [place(o["delivery"]) for o in orders]
        self.distance = metres(self.places, self.places)
        self.jobs = []  # (order, [(warehouse, place)], place of the delivery, seconds until due)
        speed = np.array([d.speed for d in drones])
        reach = np.array([d.reach for d in drones])
        flight = np.array([d.flight for d in drones])
        for o, drop in zip(orders, drops):
            due = stamp(o["createdAt"]) + WINDOW[o["priority"]] - now
            able = []
            for k, w in enumerate(self.warehouses):
                if o["productType"] not in w["productTypes"] or o.get("coldChain") and not w.get("coldStorage"):
                    continue
                there = self.distance[self.starts, stores[k]] + self.distance[stores[k], drop]
                total = there + self.distance[drop, self.ends]
                fit = (total <= reach) & (total / speed <= flight) & (there / speed <= due)
                if np.any(fit):  # near the delivery, and near some drone
                    able.append((self.distance[stores[k], drop] + there[fit].min(), k))
            able.sort()
            if able:
                self.jobs.append((o, [(k, stores[k]) for _, k in able[:choices]], drop, due))

    def ticks(self, speed):
        return np.ceil(self.distance / speed * DECI).astype(np.int64)

    def pickup(self, job, choice=0):
        order, sources, _, _ = self.jobs[job]
        return {"order": order["id"], "warehouse": self.warehouses[sources[choice][0]]["id"]}

    def delivery(self, job):
        return {"order": self.jobs[job][0]["id"]}


def grams(order):
    return math.ceil(order.get("weightKg", 0) * GRAMS)


def solve_ortools(part, budget, seed, threads):
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    # The leg home of an unused vehicle counts in its dimensions: leave out the drones
    # that could not fly it.
    able = [v for v, d in enumerate(part.drones) if d.reach > part.distance[part.starts[v], part.ends[v]]]
    drones = [part.drones[v] for v in able]
    at = [part.starts[v] for v in able] + [part.ends[v] for v in able]
    starts, ends = list(range(len(able))), list(range(len(able), 2 * len(able)))
    copies = []  # per job: (pickup, delivery) nodes of each alternative, at most one is visited
    for _, sources, drop, _ in part.jobs:
        copies.append([])
        for _, place in sources:
            copies[-1].append((len(at), len(at) + 1))
            at += [place, drop]
    manager = pywrapcp.RoutingIndexManager(len(at), len(drones), starts, ends)
    routing = pywrapcp.RoutingModel(manager)
    nodes = np.ix_(at, at)
    transit = routing.RegisterTransitMatrix(part.distance[nodes].tolist())
    routing.SetArcCostEvaluatorOfAllVehicles(transit)
    routing.AddDimensionWithVehicleCapacity(transit, 0, [d.reach for d in drones], True, "distance")
    timers = {s: routing.RegisterTransitMatrix(part.ticks(s)[nodes].tolist()) for s in {d.speed for d in drones}}
    routing.AddDimensionWithVehicleTransitAndCapacity(
        [timers[d.speed] for d in drones], 0, [int(d.flight * DECI) for d in drones], True, "time")
    demand = [0] * len(at)
    for (order, *_), nodes in zip(part.jobs, copies):
        for p, d in nodes:
            demand[p], demand[d] = grams(order), -grams(order)
    load = routing.RegisterUnaryTransitVector(demand)
    routing.AddDimensionWithVehicleCapacity(load, 0, [d.grams for d in drones], True, "load")
    solver, times = routing.solver(), routing.GetDimensionOrDie("time")
    for (order, _, _, due), nodes in zip(part.jobs, copies):
        for pickup, delivery in nodes:
            p, d = manager.NodeToIndex(pickup), manager.NodeToIndex(delivery)
            routing.AddPickupAndDelivery(p, d)
            solver.Add(routing.VehicleVar(p) == routing.VehicleVar(d))
            solver.Add(times.CumulVar(p) <= times.CumulVar(d))
            times.CumulVar(d).SetMax(int(due * DECI))
        routing.AddDisjunction([manager.NodeToIndex(p) for p, _ in nodes], PRIZE[order["priority"]])
        routing.AddDisjunction([manager.NodeToIndex(d) for _, d in nodes], PRIZE[order["priority"]])
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PARALLEL_CHEAPEST_INSERTION
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH

    until = time.process_time() + budget
    routing.AddSearchMonitor(solver.CustomLimit(lambda: time.process_time() > until))
    parameters.time_limit.FromSeconds(int(100 * budget) + 1)
    solution = routing.SolveWithParameters(parameters)
    if not solution:
        return {}
    stops = {}
    for job, nodes in enumerate(copies):
        for choice, (p, d) in enumerate(nodes):
            stops[p], stops[d] = part.pickup(job, choice), part.delivery(job)
    routes = {}
    for v, drone in enumerate(drones):
        index, route = solution.Value(routing.NextVar(routing.Start(v))), []
        while not routing.IsEnd(index):
            route.append(stops[manager.IndexToNode(index)])
            index = solution.Value(routing.NextVar(index))
        routes[drone.id] = route
    return routes


def solve_pyvrp(part, budget, seed, threads):
    from pyvrp import Model

    model = Model()
    places = [model.add_location(at["lon"], at["lat"]) for at in part.places]
    depots = {i: model.add_depot(places[i]) for i in sorted(set(part.starts + part.ends))}
    profiles = {s: model.add_profile() for s in sorted({d.speed for d in part.drones})}
    for drone, start, end in zip(part.drones, part.starts, part.ends):
        model.add_vehicle_type(
            capacity=drone.grams, start_depot=depots[start], end_depot=depots[end], max_distance=max(0, drone.reach),
            shift_duration=int(drone.flight * DECI), start_late=0, profile=profiles[drone.speed])
    for order, sources, drop, due in part.jobs:
        model.add_shipment(
            places[sources[0][1]], places[drop], delivery_tw_late=int(due * DECI), amount=grams(order),
            prize=PRIZE[order["priority"]], required=False)
    for speed, profile in profiles.items():
        ticks = part.ticks(speed)
        for i, a in enumerate(places):
            for j, b in enumerate(places):
                model.add_edge(a, b, distance=int(part.distance[i, j]), duration=int(ticks[i, j]), profile=profile)
    until = time.process_time() + budget
    result = model.solve(stop=lambda best: time.process_time() > until, seed=seed, display=False)
    routes = {}
    for route in result.best.routes():
        if not route.is_feasible():
            continue
        stops = []
        for activity in route:
            if activity.is_pickup():
                stops.append(part.pickup(activity.idx))
            elif activity.is_delivery():
                stops.append(part.delivery(activity.idx))
        routes[part.drones[route.vehicle_type()].id] = stops
    return routes


def solve_vroom(part, budget, seed, threads):
    import vroom

    problem = vroom.Input()
    names = {s: f"{s:.3f}" for s in {d.speed for d in part.drones}}
    for speed, name in names.items():
        problem.set_durations_matrix(name, part.ticks(speed).astype(np.uint32))
        problem.set_distances_matrix(name, part.distance.astype(np.uint32))
        problem.set_costs_matrix(name, part.distance.astype(np.uint32))
    for v, drone in enumerate(part.drones):
        problem.add_vehicle(vroom.Vehicle(
            v + 1, start=part.starts[v], end=part.ends[v], profile=names[drone.speed], capacity=[drone.grams],
            max_distance=max(0, drone.reach), time_window=vroom.TimeWindow(0, int(drone.flight * DECI))))
    for job, (order, sources, drop, due) in enumerate(part.jobs):
        problem.add_shipment(
            vroom.ShipmentStep(id=job + 1, location=sources[0][1]),
            vroom.ShipmentStep(id=job + 1, location=drop, time_windows=[vroom.TimeWindow(0, int(due * DECI))]),
            amount=vroom.Amount([grams(order)]), priority=RANK[order["priority"]])
    solution = within(lambda limit: problem.solve(exploration_level=5, nb_threads=threads, timeout=timedelta(seconds=limit)), budget, threads)
    routes = {}
    for route in solution.to_dict()["routes"]:
        stops = []
        for step in route["steps"]:
            if step["type"] == "pickup":
                stops.append(part.pickup(step["id"] - 1))
            elif step["type"] == "delivery":
                stops.append(part.delivery(step["id"] - 1))
        routes[part.drones[route["vehicle"] - 1].id] = stops
    return routes


def within(attempt, budget, threads):
    """Calls a solver whose limit is wall time, again with more until its threads had their processor time."""
    limit = budget
    for _ in range(4):
        began, used = time.time(), time.process_time()
        result = attempt(limit / threads)
        elapsed, used = time.time() - began, time.process_time() - used
        if used >= 0.9 * budget or elapsed < 0.9 * limit / threads:
            break
        limit *= budget / max(used, 0.01)
    return result


SOLVERS = {"ortools": solve_ortools, "pyvrp": solve_pyvrp, "vroom": solve_vroom}


def bisect(orders, most):
    """Cuts orders at the middle of the longer side until the parts are small enough."""
    if len(orders) <= most:
        return [orders]
    lat, lon = [o["delivery"]["lat"] for o in orders], [o["delivery"]["lon"] for o in orders]
    wide = (max(lon) - min(lon)) * math.cos(math.radians(lat[0])) > max(lat) - min(lat)
    orders = sorted(orders, key=lambda o: o["delivery"]["lon" if wide else "lat"])
    half = len(orders) // 2
    return bisect(orders[:half], most) + bisect(orders[half:], most)


def share_drones(drones, parts):
    """Gives each part the drones nearest to its orders, in proportion to their number."""
    if not drones:
        return [[] for _ in parts]
    centres = [{"lat": float(np.median([o["delivery"]["lat"] for o in p])), "lon": float(np.median([o["delivery"]["lon"] for o in p]))} for p in parts]
    far = metres([d.at for d in drones], centres) + metres([d.home for d in drones], centres)
    total = sum(map(len, parts))
    quota = [math.ceil(len(drones) * len(p) / total) for p in parts]
    shared = [[] for _ in parts]
    # First whoever would lose most by a second choice.
    nearest = np.sort(far, axis=1)
    regret = nearest[:, min(1, len(parts) - 1)] - nearest[:, 0]
    for v in np.argsort(-regret, kind="stable"):
        k = next(k for k in np.argsort(far[v], kind="stable") if len(shared[k]) < quota[k])
        shared[k].append(drones[v])
    return shared


def cut(problem, drones, orders, most):
    """Lists the orders and the drones of each part."""
    if len(orders) <= most:
        return [(orders, drones)]
    depots = [d["at"] for d in problem["depots"]]
    nearest = metres([o["delivery"] for o in orders], depots).argmin(axis=1)
    parts = []
    for k, depot in enumerate(depots):
        around = [o for o, near in zip(orders, nearest) if near == k]
        groups = bisect(around, most)
        parts += zip(groups, share_drones([d for d in drones if d.home == depot], groups)) if around else []
    return [(o, d) for o, d in parts if d]


def work(task):
    solver, part, budget, seed, threads = task
    began = time.process_time()
    routes = SOLVERS[solver](part, budget, seed, threads)
    return routes, time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--solver", choices=sorted(SOLVERS), required=True)
    parser.add_argument("--time", type=float, default=8, help="seconds for each problem, of every worker")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--cluster", type=int, default=320, help="the most orders of a part")
    parser.add_argument("--warehouses", type=int, default=3, help="the most that OR-Tools chooses from")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    choices = args.warehouses if args.solver == "ortools" else 1
    for path in args.problems:
        with open(path) as file:
            problem = json.load(file)
        drones = [Drone(d, {d["id"]: d["at"] for d in problem["depots"]}) for d in problem["drones"]]
        orders = problem["orders"]
        parts = [Part(problem, d, o, choices) for o, d in cut(problem, drones, orders, args.cluster)]
        parts = sorted((p for p in parts if p.jobs and p.drones), key=lambda p: -len(p.jobs))
        jobs = sum(len(p.jobs) for p in parts)
        # A problem in one piece is VROOM's for all workers as threads; the others use one.
        threads = args.workers if len(parts) == 1 and args.solver == "vroom" else 1
        budget = args.time * min(args.workers, max(threads, len(parts)))
        tasks = [(args.solver, p, budget * len(p.jobs) / jobs, args.seed, threads) for p in parts]
        began = time.time()
        with ProcessPoolExecutor(args.workers) as pool:
            results = list(pool.map(work, tasks))
        stem = Path(path).stem.split("-")
        print(json.dumps({
            "instance": int(stem[-1]), "drones": len(problem["drones"]), "orders": len(problem["orders"]),
            "geography": "-".join(stem[1:-1]), "solver": args.solver, "parts": len(parts),
            "elapsedMs": int(1000 * (time.time() - began)), "cpuMs": int(1000 * sum(used for _, used in results)),
            "routes": [{"droneId": d, "stops": s} for routes, _ in results for d, s in routes.items() if s],
        }), flush=True)


if __name__ == "__main__":
    main()
