#!/usr/bin/env python3
"""Orders a parcel and follows it to its delivery. See docs/first-order.md.

Python's standard library suffices. API is the address of a State Manager, REQUESTER_KEY an API key
of role requester.
"""
import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid


def call(method, path, body=None, headers=()):
    """Returns the answer's status and document. What failed on its way is tried again: the same
    Idempotency-Key makes no second order."""
    for pause in (1, 2, 4, 8, 0):
        request = urllib.request.Request(os.environ["API"] + path, method=method, data=json.dumps(body).encode() if body else None)
        for name, value in {"Authorization": "Bearer " + os.environ["REQUESTER_KEY"], "Content-Type": "application/json", **dict(headers)}.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code not in (429, 502, 503, 504):
                return refused.code, json.load(refused)
            problem = f"{refused.code} {refused.read().decode()}"
        except OSError as unreachable:
            problem = str(unreachable)
        if pause:
            time.sleep(pause)
    sys.exit(f"{method} {path}: {problem}")


def main():
    p = argparse.ArgumentParser(description="Orders a parcel and follows it to its delivery. Set API and REQUESTER_KEY.")
    p.add_argument("product", help="such as BLOOD")
    p.add_argument("--to", required=True, metavar="LAT,LON", help="the address of the delivery")
    p.add_argument("--priority", default="STANDARD", choices=["STANDARD", "HIGH", "CRITICAL"])
    p.add_argument("--weight", type=float, default=1, metavar="KG")
    p.add_argument("--cold", action="store_true", help="the parcel needs a cold chain")
    p.add_argument("--key", default=str(uuid.uuid4()), help="names this request, so that repeating it orders nothing more")
    args = p.parse_args()
    lat, lon = map(float, args.to.split(","))
    status, answer = call("POST", "/api/v1/orders", {
        "deliveryLocation": {"lat": lat, "lon": lon}, "productType": args.product, "priority": args.priority,
        "packageWeightKg": args.weight, "requiresColdChain": args.cold,
    }, {"Idempotency-Key": args.key})
    if status != 202:
        for parameter in answer.get("parameters", []):
            print(parameter.get("pointer", parameter.get("name")), parameter.get("detail"))
        sys.exit(f"refused with {status}: {answer.get('detail')}")
    print("ordered", answer["id"], flush=True)
    said = ""
    while True:
        status, order = call("GET", "/api/v1/orders/" + answer["id"])
        if status == 410:
            sys.exit(f"refused: {order['detail']}")
        now = order.get("summary", order.get("detail"))  # 404 until it is known
        if now != said:
            print(now, flush=True)
            said = now
        if order.get("status") in ("DELIVERED", "CANCELLED"):
            return sys.exit(order["status"] == "CANCELLED")
        time.sleep(1)


if __name__ == "__main__":
    main()
