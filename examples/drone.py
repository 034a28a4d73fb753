#!/usr/bin/env python3
"""Flies a simulated drone over the drone link. See docs/first-drone.md.

Needs grpcio, and stubs that grpcio-tools generates from the folder proto:

    python3 -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. \\
        dronefleet/v1/dronefleet.proto dronefleet/v1/link.proto
"""
import argparse
import math
import os
import queue
import time

import grpc
from dronefleet.v1 import dronefleet_pb2 as fleet
from dronefleet.v1 import link_pb2, link_pb2_grpc

SPEED, STAY, PER_KM = 50 / 3.6, 3, 2.5  # metres a second, seconds at a stop, percent of a charge


class Drone:
    def __init__(self, id, home):
        self.id, self.home, self.battery = id, home, 100.0
        self.position = fleet.Position(lat=home.lat, lon=home.lon)
        self.mission, self.done, self.stayed = None, 0, 0
        self.ended, self.latest = set(), 0  # missions never to begin again; expiry of the newest command

    def take(self, message):
        """Obeys a message of the gateway. The rules are in api/asyncapi.yaml."""
        kind, mission, done = message.WhichOneof("message"), None, 0
        if kind == "refusal":
            print("refused:", message.refusal.reason, message.refusal.text, flush=True)
        elif kind == "resume" and message.resume.HasField("mission") and not self.mission:
            mission, done = message.resume.mission, message.resume.completed_stops
        elif kind == "command" and message.command.revoke:
            self.end(message.command.mission.id)
        elif kind == "command" and message.command.mission.status == "ACTIVE":
            expires, told = message.command.expires_at.ToMilliseconds(), message.command.mission
            known = self.mission and self.mission.id == told.id
            if expires >= time.time() * 1000 and (expires > self.latest if known else not self.mission):
                mission, done, self.latest = told, self.done if known else 0, expires
        if mission and mission.id not in self.ended:
            self.mission, self.done = mission, done
            print("flies", mission.id, flush=True)

    def end(self, id):
        self.ended.add(id)
        self.mission = None if self.mission and self.mission.id == id else self.mission

    def fly(self, seconds):
        """Goes towards the next stop or, without a mission, home."""
        if self.mission and self.done >= len(self.mission.route):  # the last report has said so
            self.end(self.mission.id)
        stop = self.mission.route[self.done] if self.mission else None
        to, at = stop.position if stop else self.home, self.position
        left = math.hypot(to.lat - at.lat, (to.lon - at.lon) * math.cos(math.radians(at.lat))) * 111_195
        share = min(1, SPEED * seconds / left) if left else 1
        at.lat, at.lon = at.lat + (to.lat - at.lat) * share, at.lon + (to.lon - at.lon) * share
        self.battery -= left * share / 1000 * PER_KM
        self.stayed = self.stayed + seconds if share == 1 else 0
        if stop and self.stayed > STAY:
            self.done, self.stayed = self.done + 1, 0
            print("completed", fleet.WaypointType.Name(stop.type).removeprefix("WAYPOINT_TYPE_"), flush=True)

    def messages(self, inbox):
        """Says hello and then reports every second, all with what the drone knows of its mission."""
        yield link_pb2.DroneMessage(hello=link_pb2.DroneHello(drone_id=self.id))
        for sequence in range(1, 2**32):  # a report has all that earlier ones had, so none is sent again
            time.sleep(1)
            while not inbox.empty():
                self.take(inbox.get())
            self.fly(1)
            t = fleet.DroneTelemetry(drone_id=self.id, position=self.position, battery_percentage=self.battery)
            t.timestamp.GetCurrentTime()
            t.status = fleet.DRONE_STATUS_MOVING if self.mission or self.position != self.home else fleet.DRONE_STATUS_IDLE
            if self.mission:
                t.current_mission_id, t.mission_revision, t.completed_stops = self.mission.id, self.mission.revision, self.done
            yield link_pb2.DroneMessage(report=link_pb2.DroneReport(sequence=sequence, telemetry=t))


p = argparse.ArgumentParser(description="Flies a simulated drone. DRONE_KEY is its API key.")
p.add_argument("id")
p.add_argument("--home", required=True, metavar="LAT,LON", help="where it starts, and returns to")
p.add_argument("--link", default="localhost:8443", metavar="HOST:PORT", help="the gateway (default: %(default)s)")
p.add_argument("--ca", metavar="FILE", help="authority of the gateway's certificate (default: public ones)")
args = p.parse_args()
lat, lon = map(float, args.home.split(","))
drone, who = Drone(args.id, fleet.Position(lat=lat, lon=lon)), [("authorization", "Bearer " + os.environ["DRONE_KEY"])]
trust = grpc.ssl_channel_credentials(open(args.ca, "rb").read() if args.ca else None)
while True:
    with grpc.secure_channel(args.link, trust) as channel:
        inbox = queue.SimpleQueue()
        try:
            for message in link_pb2_grpc.DroneLinkStub(channel).Fly(drone.messages(inbox), metadata=who):
                inbox.put(message)
        except grpc.RpcError as e:
            print("connection lost:", e.details(), flush=True)
    time.sleep(2)
