import { time, type Store } from "./store";
import type { Drone, Place } from "./types";

export const reach = 150; // metres around a place within which drones stand at it

const flying = new Set(["MOVING", "DELIVERING"]);

// standsAt says that a drone is parked at a place.
export function standsAt(m: { lat: number; lon: number; status: string }, p: Place): boolean {
  if (flying.has(m.status)) return false;
  const degrees = reach / 111320;
  return Math.abs(m.lat - p.lat) < degrees && Math.abs(m.lon - p.lon) * Math.cos((p.lat * Math.PI) / 180) < degrees;
}

const usualRate = 10; // percent of charge a minute, as the planner assumes

// full is when a drone that charges will be full, in Unix ms.
export function full(s: Store, d: Drone): number {
  return s.now() + ((100 - (s.marks.get(d.id)?.battery ?? d.batteryPercentage)) / (d.chargeRate || usualRate)) * 60e3;
}

// lands is when a drone has flown its mission, by the plan; NaN if it has none.
export function lands(s: Store, d: Drone): number {
  const m = s.all.mission.get(d.currentMissionId ?? "");
  return m?.status === "ACTIVE" ? Math.max(time(m.route.at(-1)?.eta), s.now()) : NaN;
}
