#!/usr/bin/env python3
"""Plans one cycle with OR-Tools and publishes its decisions. See docs/first-optimizer.md.

Needs ortools. API is the address of a State Manager, OPERATOR_KEY an API key of role operator. Run it
under the lock of the depot's planning area, which gives it a fence:

    locktool run optimizer:cycle:DEPOT -- python3 optimizer.py DEPOT
"""
import argparse
import json
import math
import os
import urllib.parse
import urllib.request

from ortools.constraint_solver import pywrapcp, routing_enums_pb2

SPEED, STAY, RESERVE = 50 / 3.6, 3, 25  # metres a second, seconds at a stop, percent of a charge
UNSERVED = {"ORDER_PRIORITY_STANDARD": 10**5, "ORDER_PRIORITY_HIGH": 3 * 10**5, "ORDER_PRIORITY_CRITICAL": 10**6}  # metres


def call(path, body=None):
    request = urllib.request.Request(os.environ["API"] + path, data=json.dumps(body).encode() if body else None)
    request.add_header("Authorization", "Bearer " + os.environ["OPERATOR_KEY"])
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=15) as answer:
        return json.load(answer)


def metres(a, b):
    return int(math.hypot(b["lat"] - a["lat"], (b["lon"] - a["lon"]) * math.cos(math.radians(a["lat"]))) * 111_195)


def stops(order, warehouses):
    """Returns the order's pickup, at its address or the nearest warehouse that has the product, and its delivery."""
    to, cold = order["deliveryLocation"], order["requiresColdChain"]
    delivery = {"type": "HOSPITAL_DELIVERY", "position": to, "relatedOrderId": order["id"]}
    if order.get("pickupLocation"):
        return [{"type": "WAREHOUSE_PICKUP", "position": order["pickupLocation"], "relatedOrderId": order["id"]}, delivery]
    fit = [w for w in warehouses if order["productType"] in w["authorizedProductTypes"] and (w["isColdStorageCapable"] or not cold)]
    for w in sorted(fit, key=lambda w: metres(w["position"], to))[:1]:
        return [{"type": "WAREHOUSE_PICKUP", "position": w["position"], "relatedOrderId": order["id"], "relatedWarehouseId": w["id"]}, delivery]


def plan(snapshot, seconds):
    """Yields each drone that flies, the orders it takes, its route and the route's length in metres."""
    drones, home = snapshot["drones"], {"type": "DEPOT_RETURN", "position": snapshot["depot"]["position"]}
    orders = [o for o in snapshot["orders"] if stops(o, snapshot["warehouses"]) and not o["pinnedDroneId"] and not o["forbiddenDroneIds"]]
    places = [s for o in orders for s in stops(o, snapshot["warehouses"])] + drones + [home]
    if not drones or not orders:
        return
    starts, n = range(2 * len(orders), len(places) - 1), len(drones)
    index = pywrapcp.RoutingIndexManager(len(places), n, list(starts), [len(places) - 1] * n)
    model, place = pywrapcp.RoutingModel(index), lambda i: places[index.IndexToNode(i)]
    leg = model.RegisterTransitCallback(lambda a, b: metres(place(a)["position"], place(b)["position"]))
    model.SetArcCostEvaluatorOfAllVehicles(leg)
    reach = [max(0, int((d["batteryPercentage"] - RESERVE) / (d["consumptionPerKm"] or 2.5) * 1000)) for d in drones]
    model.AddDimensionWithVehicleCapacity(leg, 0, reach, True, "metres")
    grams = [g for o in orders for g in (int(o["packageWeightKg"] * 1000), -int(o["packageWeightKg"] * 1000))] + [0] * (n + 1)
    load = model.RegisterUnaryTransitCallback(lambda i: grams[index.IndexToNode(i)])
    model.AddDimensionWithVehicleCapacity(load, 0, [int(d["payloadCapacityKg"] * 1000) or 10**9 for d in drones], True, "grams")
    flown = model.GetDimensionOrDie("metres")
    for k, o in enumerate(orders):
        pickup, delivery = index.NodeToIndex(2 * k), index.NodeToIndex(2 * k + 1)
        model.AddPickupAndDelivery(pickup, delivery)
        model.solver().Add(model.VehicleVar(pickup) == model.VehicleVar(delivery))
        model.solver().Add(flown.CumulVar(pickup) <= flown.CumulVar(delivery))
        model.AddDisjunction([pickup, delivery], UNSERVED[o["priority"]], 2)
        for v in [v for v, d in enumerate(drones) if o["requiresColdChain"] and "coldBoxMaxCelsius" not in d]:
            model.VehicleVar(pickup).RemoveValue(v)
    search = pywrapcp.DefaultRoutingSearchParameters()
    search.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PARALLEL_CHEAPEST_INSERTION
    search.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    search.time_limit.FromSeconds(seconds)
    solution = model.SolveWithParameters(search)
    for v, drone in enumerate(drones):
        at, route = model.Start(v), []
        while not model.IsEnd(at := solution.Value(model.NextVar(at))):
            route.append(place(at))
        if route:
            ids = [s["relatedOrderId"] for s in route if s["type"] == "HOSPITAL_DELIVERY"]
            yield drone, ids, route + [home], solution.Value(flown.CumulVar(at))


p = argparse.ArgumentParser(description="Plans one cycle of a depot. Set API and OPERATOR_KEY; locktool sets LOCK_FENCE.")
p.add_argument("depot")
p.add_argument("--seconds", type=int, default=2, help="how long to search (default: %(default)s)")
args = p.parse_args()
snapshot = call("/api/v1/optimizer/snapshot?depot=" + urllib.parse.quote(args.depot))
for drone, orders, route, length in plan(snapshot, args.seconds):
    id = f"{snapshot['sessionId']}-{drone['id']}"
    decision = {"decisionId": id, "cycleId": snapshot["sessionId"], "depotId": args.depot, "fence": os.environ["LOCK_FENCE"],
                "snapshotTime": snapshot["readTime"], "droneId": drone["id"], "orderIds": orders, "route": route,
                "estimatedBatteryConsumption": length / 1000 * (drone["consumptionPerKm"] or 2.5),
                "estimatedDurationMinutes": (length / SPEED + STAY * len(route)) / 60}
    call("/api/v1/messages/publish", {"topic": "decisions", "text": json.dumps(decision), "orderingKey": drone["id"], "reason": "a cycle"})
    print("published", id, *orders)
