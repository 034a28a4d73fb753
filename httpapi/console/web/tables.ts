import { late, unplanned } from "./counts";
import { name } from "./names";
import { open, standing, stopText, time, unconfirmed, type Store } from "./store";
import type { Alert, Cycle, Drone, Entities, Key, Mission, Order } from "./types";
import { clock, plain, span } from "./words";

// Methods, so that a table of some entities is a table of entities.
// A column of refs shows them as links; its text is for the filter.
interface Column<T> { name: string; text(t: T, s: Store): string; by?(t: T, s: Store): number; refs?(t: T): Key[] } // sorted by its text, if by nothing else
export interface Table<T> {
  kind: "drone" | "order" | "mission" | "alert" | "cycle"; columns: Column<T>[];
  rows(s: Store): T[]; // those of a section together
  section?(t: T): string;
  tone?(t: T, s: Store): string;
}

const ref = (kind: Key["kind"], id?: string): Key[] => id ? [{ kind, id }] : [];

const rank: Record<string, number> = { EMERGENCY: 0, PROBLEM: 1, UNKNOWN: 2, DELIVERING: 3, MOVING: 4, RESERVED: 5, IDLE: 6, CHARGING: 7 };

const priorities = ["CRITICAL", "HIGH", "STANDARD"];

// Orders that no drone has come first: somebody has to do something about them.
const sections = ["No drone", "With a drone", "Held"];
function section(o: Order): string { return o.held ? "Held" : unplanned(o) ? "No drone" : "With a drone"; }

const orders: Table<Order> = {
  kind: "order",
  columns: [
    { name: "Order", text: (o, s) => name(s, { kind: "order", id: o.id }) },
    { name: "Priority", text: (o) => plain(o.priority ?? ""), by: (o) => priorities.indexOf(o.priority ?? "") },
    { name: "Slack", text: (o, s) => span(s.slack(o)), by: (o, s) => s.slack(o) },
    { name: "Status", text: (o) => (o.held ? "held" : plain(o.status)) },
    { name: "ETA", text: (o, s) => clock(s.eta(o)) || (o.earliestArrival && unplanned(o) ? `at best ${clock(time(o.earliestArrival))}` : ""), by: (o, s) => s.eta(o) || time(o.earliestArrival) },
    { name: "Drone", text: (o) => o.assignedDroneId ?? "", refs: (o) => ref("drone", o.assignedDroneId) },
    { name: "Waits for", text: (o) => o.held ? o.heldReason ?? "an operator" : plain(o.waiting?.[0]?.reason ?? "") },
  ],
  rows: (s) => [...s.all.order.values()].filter(open).map((o) => [s.slack(o), o] as const)
    .sort(([a, x], [b, y]) => sections.indexOf(section(x)) - sections.indexOf(section(y)) || (a || 0) - (b || 0) || (x.id < y.id ? -1 : 1)).map(([, o]) => o),
  section,
  tone: (o, s) => late(o, s) || s.slack(o) < 0 ? "bad" : o.priority === "CRITICAL" ? "warn" : "",
};

const drones: Table<Drone> = {
  kind: "drone",
  columns: [
    { name: "Drone", text: (d, s) => name(s, { kind: "drone", id: d.id }) },
    { name: "Status", text: (d, s) => [plain(d.status), d.grounded ? "grounded" : "", standing(d), due(d, s) ? "due soon" : ""].filter(Boolean).join(", ") },
    { name: "Battery", text: (d, s) => { const m = s.marks.get(d.id); return m ? `${Math.round(m.battery)} %` : ""; }, by: (d, s) => s.marks.get(d.id)?.battery ?? NaN },
    { name: "Report", text: (d, s) => { const m = s.marks.get(d.id); return m ? span(Math.max(0, s.now() - m.at)) : "never"; }, by: (d, s) => -(s.marks.get(d.id)?.at ?? NaN) },
    { name: "Carries", text: (d) => d.currentMissionId ?? "", refs: (d) => ref("mission", d.currentMissionId) },
    { name: "Depot", text: (d) => d.homeDepotId ?? "", refs: (d) => ref("depot", d.homeDepotId) },
  ],
  rows: (s) => [...s.all.drone.values()].sort((a, b) => (rank[a.status] ?? 9) - (rank[b.status] ?? 9) || (a.id < b.id ? -1 : 1)),
  tone: (d, s) => d.status === "EMERGENCY" || d.status === "PROBLEM" ? "bad" : d.status === "UNKNOWN" || d.grounded || standing(d) || due(d, s) ? "warn" : "",
};

function due(d: Drone, s: Store): boolean { return s.dueSoon.has(d.id); }

const missions: Table<Mission> = {
  kind: "mission",
  columns: [
    { name: "Mission", text: (m, s) => name(s, { kind: "mission", id: m.id }) },
    { name: "Status", text: (m) => [plain(m.status) + (m.failureReason ? `: ${plain(m.failureReason)}` : ""), m.status === "ACTIVE" ? unconfirmed(m) : ""].filter(Boolean).join("; ") },
    { name: "Drone", text: (m) => m.droneId, refs: (m) => ref("drone", m.droneId) },
    { name: "Stops", text: (m) => `${m.reachedStops} of ${m.route.length}`, by: (m) => m.route.length - m.reachedStops },
    { name: "Orders", text: (m) => m.orderIds.join("\n"), refs: (m) => m.orderIds.map((id) => ({ kind: "order", id })) },
    { name: "Next", text: (m) => { const w = m.route[m.reachedStops]; return m.status === "ACTIVE" && w ? `${stopText(w)} ${clock(time(w.eta))}` : ""; }, by: (m) => m.status === "ACTIVE" ? time(m.route[m.reachedStops]?.eta) : NaN },
  ],
  rows: (s) => [...s.all.mission.values()].sort((a, b) => (a.status === "ACTIVE" ? 0 : 1) - (b.status === "ACTIVE" ? 0 : 1) || time(b.startTime) - time(a.startTime)),
  tone: (m) => m.status === "FAILED" ? "bad" : "",
};

const alerts: Table<Alert> = {
  kind: "alert",
  columns: [
    { name: "Alert", text: (a) => plain(a.kind) },
    { name: "What", text: (a) => a.text },
    { name: "Since", text: (a) => clock(time(a.since)) },
    { name: "Acknowledged", text: (a) => a.acknowledged ? `${a.acknowledged.by}: ${a.acknowledged.reason}` : "" },
  ],
  rows: (s) => [...s.all.alert.values()],
};

const cycles: Table<Cycle> = {
  kind: "cycle",
  columns: [
    { name: "Cycle", text: (c) => clock(time(c.startedAt)), by: (c) => time(c.startedAt) },
    { name: "Outcome", text: (c) => plain(c.outcome) + quiet(c) + (c.detail ? `: ${c.detail}` : "") },
    { name: "Decisions", text: (c) => decisions(c) },
    { name: "Not served", text: (c) => notServed(c) },
    { name: "Depot", text: (c) => c.depotId, refs: (c) => ref("depot", c.depotId) },
    { name: "Lock held by", text: (c) => c.holder ?? "" },
    { name: "Fence", text: (c) => fence(c) },
    { name: "Read, solve, publish (ms)", text: (c) => `${c.readMs}, ${c.solveMs}, ${c.publishMs}`, by: (c) => c.readMs + c.solveMs + c.publishMs },
  ],
  rows: (s) => [...s.all.cycle.values()].sort((a, b) => time(b.startedAt) - time(a.startedAt)),
  tone: (c) => c.outcome === "FAILED" || c.outcome === "ABORTED" || c.outcome === "LEASE_LOST" ? "bad" : "",
};

// sorted are rows by a column from 1, negative for the largest first; sections stay together, and what is
// empty comes last. 0 leaves them as they are.
export function sorted<T>(t: Table<T>, rows: T[], column: number, s: Store): T[] {
  const c = t.columns[Math.abs(column) - 1], way = Math.sign(column);
  if (!c) return rows;
  const last = (v: number | string) => Number(v === "" || Number.isNaN(v));
  const sections = [...new Set(rows.map((r) => t.section?.(r)))];
  return rows.map((r) => ({ r, v: c.by ? c.by(r, s) : c.text(r, s), at: sections.indexOf(t.section?.(r)) }))
    .sort((a, b) => a.at - b.at || last(a.v) - last(b.v) || way * (typeof a.v === "number" ? a.v - (b.v as number) : a.v.localeCompare(b.v as string, undefined, { numeric: true })) || 0).map(({ r }) => r);
}

// quiet says that a cycle is the latest of those without orders, which share one record.
export function quiet(c: Cycle): string { return c.withoutOrders ? `, ${c.withoutOrders} cycles without orders` : ""; }

// fence is a cycle's fence as people read it.
export function fence(c: Cycle): string { return (c.fence ?? "").replace(/^0+/, ""); }

// refused counts the decisions of a cycle that were refused, by reason.
export function refused(c: Cycle): string {
  return Object.entries(c.refused).map(([reason, n]) => `${n} ${plain(reason)}`).join(", ");
}

// decisions says what came of those of a cycle.
export function decisions(c: Cycle): string {
  const no = refused(c);
  return `${c.applied} applied` + (no && `; refused: ${no}`) + (c.handedOver ? `; ${c.handedOver} orders handed over` : "");
}

// notServed counts the orders that a cycle did not serve, by reason.
export function notServed(c: Cycle): string {
  const counts = new Map<string, number>();
  for (const u of c.unserved) counts.set(u.reason, (counts.get(u.reason) ?? 0) + 1);
  return [...counts].map(([reason, n]) => `${n} ${plain(reason)}`).join(", ") + (c.unservedTotal > c.unserved.length ? ", more" : "");
}

export const tables = { order: orders, drone: drones, mission: missions, alert: alerts, cycle: cycles } as { [K in "order" | "drone" | "mission" | "alert" | "cycle"]: Table<Entities[K]> };
