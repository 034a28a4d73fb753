import { open, time, type Store } from "./store";
import type { Drone, Order } from "./types";

// Count is a number that a dispatcher watches. Pressed, it narrows the page to what it counts.
interface CountOf<K, T> { id: string; name: string; kind: K; tone?: "bad" | "warn"; of(e: T, s: Store): boolean }
export type Count = CountOf<"order", Order> | CountOf<"drone", Drone>;

const soon = 120e3; // ms of slack below which an order is at risk

const order = (id: string, name: string, of: (o: Order, s: Store) => boolean, tone?: "bad" | "warn"): Count =>
  ({ id, name, kind: "order", tone, of: (o, s) => open(o) && of(o, s) });
const drone = (id: string, name: string, of: (d: Drone) => boolean, tone?: "bad" | "warn"): Count => ({ id, name, kind: "drone", tone, of });
const status = (...names: string[]) => (d: Drone) => names.includes(d.status);

export const counts: Count[] = [
  order("no-drone", "No drone", unplanned, "warn"),
  order("at-risk", "At risk", (o, s) => !o.held && !late(o, s) && s.slack(o) < soon, "warn"),
  order("late", "Late", late, "bad"),
  order("held", "Held", (o) => o.held),
  order("critical", "Critical", (o) => o.priority === "CRITICAL"),
  order("high", "High", (o) => o.priority === "HIGH"),
  order("standard", "Standard", (o) => o.priority === "STANDARD"),
  drone("flying", "Flying", status("RESERVED", "MOVING", "DELIVERING")),
  drone("idle", "Idle", status("IDLE")),
  drone("charging", "Charging", status("CHARGING")),
  drone("trouble", "In trouble", status("PROBLEM", "EMERGENCY"), "bad"),
  drone("silent", "Silent", status("UNKNOWN"), "warn"),
  drone("grounded", "Grounded", (d) => d.grounded === true),
];

// unplanned says that an order waits for a drone and nobody holds it.
export function unplanned(o: Order): boolean { return open(o) && !o.held && !o.assignedDroneId; }

// late says that an order's deadline has passed.
export function late(o: Order, s: Store): boolean { return time(o.deadline) < s.now(); }

// numberOf is how many entities a count has now.
export function numberOf(c: Count, s: Store): number {
  let n = 0;
  if (c.kind === "order") { for (const o of s.all.order.values()) if (c.of(o, s)) n++; }
  else for (const d of s.all.drone.values()) if (c.of(d, s)) n++;
  return n;
}

// oldestReport is when the drone was heard of last that has been silent longest, of those that
// fly or should report; NaN for none.
export function oldestReport(s: Store): number {
  let oldest = NaN;
  for (const m of s.marks.values()) if (!(m.at >= oldest)) oldest = m.at;
  return oldest;
}
