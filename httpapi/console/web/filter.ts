import { counts } from "./counts";
import { open, type Store } from "./store";
import { tables } from "./tables";
import type { Drone, Kind, Mission, Order } from "./types";

// Filter says which entities the page shows. Map and tables ask the same one. An order is
// shown with its drone and its mission, and a drone with what it carries.
export class Filter {
  private shown = new Map<Kind, Set<string>>(); // kinds that are missing here are shown whole

  // find is a text; only are ids of counts: of those of one kind, one has to apply.
  constructor(s: Store, find: string, only: string[]) {
    const wanted = counts.filter((c) => only.includes(c.id)), all = s.all;
    const ofOrders = wanted.filter((c) => c.kind === "order"), ofDrones = wanted.filter((c) => c.kind === "drone");
    const order = (o?: Order) => !ofOrders.length || (!!o && ofOrders.some((c) => c.of(o, s)));
    const drone = (d?: Drone) => !ofDrones.length || (!!d && ofDrones.some((c) => c.of(d, s)));
    const carried = (m?: Mission) => (m?.orderIds ?? []).map((id) => all.order.get(id)).filter((o) => o !== undefined);
    const words = (kind: keyof typeof tables, e: { id: string }) => [e.id, ...tables[kind].columns.map((c) => c.text(e as never, s))].join("\n").toLowerCase();
    const load = (m: Mission | undefined) => find ? carried(m).map((o) => words("order", o)).join("\n") : "";
    const keep = <T extends { id: string }>(kind: keyof typeof tables, of: Iterable<T>, fits: (e: T) => boolean, more: (e: T) => string = () => "") => {
      const ids = new Set<string>();
      for (const e of of) if (fits(e) && (!find || words(kind, e).includes(find) || more(e).includes(find))) ids.add(e.id);
      this.shown.set(kind, ids);
    };
    const missionOf = (d: Drone) => all.mission.get(d.currentMissionId ?? "");
    keep("order", all.order.values(), (o) => open(o) && order(o) && drone(all.drone.get(o.assignedDroneId ?? "")));
    keep("drone", all.drone.values(), (d) => drone(d) && (!ofOrders.length || carried(missionOf(d)).some(order)), (d) => load(missionOf(d)));
    keep("mission", all.mission.values(), (m) => drone(all.drone.get(m.droneId)) && (!ofOrders.length || carried(m).some(order)), load);
    keep("cycle", all.cycle.values(), () => true);
    keep("alert", all.alert.values(), (a) => wanted.length === 0 || this.matches(a.entity.kind, a.entity.id),
      (a) => this.shown.get(a.entity.kind)?.has(a.entity.id) ? find : "");
  }

  matches(kind: Kind, id: string): boolean { return this.shown.get(kind)?.has(id) ?? true; }

  // count is how many entities of a kind are shown.
  count(kind: "order" | "drone"): number { return this.shown.get(kind)!.size; }
}
