import type { Drone, Entities, Key, Kind, Mission, Order, Place, Position, Upsert, Waypoint } from "./types";
import { clock, plain } from "./words";

const kinds: Kind[] = ["drone", "order", "mission", "cycle", "depot", "warehouse", "lock", "alert"];

// Mark is where a drone is drawn, with what its heading and trail need.
export interface Mark {
  id: string; lat: number; lon: number; heading: number; status: string; battery: number; at: number;
  speed: number; // in metres a second, between the last two reports
  trail: number[]; // latitudes and longitudes by turns, oldest first
}

const most = 2000; // hospitals
const trailPoints = 60;
const degree = 111320; // metres of a degree of latitude

// Store is the fleet as the stream last told it.
export class Store {
  readonly all: { [K in Kind]: Map<string, Entities[K]> };
  readonly marks = new Map<string, Mark>();
  readonly hospitals = new Map<string, Place>(); // where orders go
  private offset = NaN; // of the server's clock to this page's, in ms
  private due: Set<string> | null = null; // null after alerts have changed

  // at is the moment that a store of the past shows, in Unix ms.
  constructor(private at = NaN) {
    this.all = Object.fromEntries(kinds.map((kind) => [kind, new Map()])) as typeof this.all;
  }

  // now is the server's time in Unix ms.
  now(): number { return isNaN(this.at) ? performance.now() + this.offset : this.at; }

  // turn sets the moment of a store of the past.
  turn(at: number): void { this.at = at; }

  // tell sets the server's time.
  tell(serverTime: string): void { this.offset = Date.parse(serverTime) - performance.now(); }

  clear(): void {
    for (const kind of kinds) this.all[kind].clear();
    this.due = null;
    this.marks.clear();
    this.hospitals.clear();
  }

  upsert(u: Upsert): void {
    const map = this.all[u.kind] as Map<string, unknown> | undefined;
    if (!map) return; // a kind of a later server
    map.set(u.id, u.entity);
    if (u.kind === "alert") this.due = null;
    if (u.kind === "order" && this.hospitals.size < most) {
      const p = (u.entity as Order).deliveryLocation;
      this.hospitals.set(`${p.lat} ${p.lon}`, p);
    }
    if (u.kind === "drone") {
      const d = u.entity as Drone;
      if (!d.position) return; // it is nowhere until it reports
      this.place(d.id, d.position.lat, d.position.lon, d.batteryPercentage, time(d.lastUpdate));
      this.marks.get(d.id)!.status = d.status;
    }
  }

  delete(k: Key): void {
    this.all[k.kind]?.delete(k.id);
    if (k.kind === "alert") this.due = null;
    if (k.kind === "drone") this.marks.delete(k.id);
  }

  position([id, lat, lon, battery, , at]: Position): void {
    if (this.all.drone.has(id)) this.place(id, lat, lon, battery, at);
  }

  private place(id: string, lat: number, lon: number, battery: number, at: number): void {
    const m = this.marks.get(id);
    if (!m) {
      this.marks.set(id, { id, lat, lon, heading: 0, status: "", battery, at, speed: 0, trail: [lat, lon] });
      return;
    }
    if (at < m.at) return;
    const north = lat - m.lat, east = (lon - m.lon) * Math.cos((lat * Math.PI) / 180);
    if (at > m.at) m.speed = Math.hypot(north, east) * degree / ((at - m.at) / 1000);
    m.battery = battery;
    m.at = at;
    if (Math.abs(north) + Math.abs(east) < 1e-6) return;
    m.heading = Math.atan2(east, north);
    m.lat = lat;
    m.lon = lon;
    m.trail.push(lat, lon);
    if (m.trail.length > 2 * trailPoints) m.trail.splice(0, 2);
  }

  // bound is how many metres a drone may be from its mark: it may have flown on since its report, or turned.
  bound(m: Mark): number {
    const speed = Math.max(m.speed, (this.all.drone.get(m.id)?.speedKmh ?? 0) / 3.6);
    return speed * Math.max(0, this.now() - m.at) / 1000;
  }

  // dueSoon are the drones of which an item is due, or soon will be.
  get dueSoon(): Set<string> {
    return (this.due ??= new Set([...this.all.alert.values()].filter((a) => a.kind === "DRONE_DUE_SOON").map((a) => a.entity.id)));
  }

  missionOf(o: Order): Mission | undefined {
    return o.assignedMissionId ? this.all.mission.get(o.assignedMissionId) : undefined;
  }

  // eta is when the plan delivers an order, in Unix ms; NaN if nobody planned it.
  eta(o: Order): number {
    const stop = this.missionOf(o)?.route.find((w) => w.relatedOrderId === o.id && w.type === "HOSPITAL_DELIVERY");
    return time(stop?.eta);
  }

  // handOvers are the depots that planned an order before, with the reason of each as far as
  // its cycles are still shown.
  handOvers(o: Order): string[] {
    const cycles = [...this.all.cycle.values()];
    return (o.handedOverBy ?? []).map((depot) => {
      const left = cycles.filter((c) => c.depotId === depot || c.depotIds?.includes(depot)).flatMap((c) => c.unserved)
        .find((u) => u.orderId === o.id && u.reason.includes("handed over to depot"));
      return left ? `${depot}: ${left.reason.replaceAll("_", " ")}` : depot; // ids keep their capitals
    });
  }

  // slack is the time between an order's delivery and its deadline, in ms: as planned; or if no
  // drone has it, the soonest that one could bring it.
  slack(o: Order): number {
    const eta = this.eta(o), at = isNaN(eta) ? time(o.earliestArrival) : eta;
    return time(o.deadline) - (isNaN(at) ? this.now() : Math.max(at, this.now()));
  }

  // droneOf is the drone that an entity is, or is with; undefined for none.
  droneOf(k: Key): string | undefined {
    switch (k.kind) {
      case "drone": return k.id;
      case "order": return this.all.order.get(k.id)?.assignedDroneId;
      case "mission": return this.all.mission.get(k.id)?.droneId;
    }
  }
}

// standing says how a drone is registered, if it is not in the usual way; "" if it is.
export function standing(d: Drone): string {
  return d.retiredAt ? "retired" : d.unregistered ? "not registered" : "";
}

// plannedBy is the depot whose area plans an order, and since when if another did before.
export function plannedBy(o: Order): string {
  return o.planningDepotId ? o.planningDepotId + (o.handedOverBy?.length ? ` since ${clock(time(o.planningSince))}` : "") : "";
}

// unconfirmed says what a drone was told and has not confirmed by a report; "" if nothing.
export function unconfirmed(m: Mission): string {
  switch (m.unconfirmed) {
    case "RECALL": return `recalled at ${clock(time(m.recalledAt))}, not yet confirmed by the drone`;
    case "AMENDMENT": return "changed, not yet confirmed by the drone";
    case "MISSION": return "sent, not yet confirmed by the drone";
  }
  return m.recalledAt ? `recalled at ${clock(time(m.recalledAt))}` : "";
}

export function open(o: Order): boolean { return o.status !== "DELIVERED" && o.status !== "CANCELLED"; }

// time is a moment in Unix ms; NaN for none.
export function time(text?: string): number { return text ? Date.parse(text) : NaN; }

// stopText is what a drone does at a stop.
export function stopText(w: Waypoint): string {
  if (w.type === "CHARGE") return `charge to ${Math.round(w.chargeToPercent ?? 0)} %`;
  return w.type === "WAIT" ? `wait until ${clock(time(w.waitUntil))}` : plain(w.type);
}
