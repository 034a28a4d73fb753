import { name } from "./names";
import { pathOf } from "./session";
import { open, unconfirmed, type Store } from "./store";
import type { Alert, Key } from "./types";

// Verb is something that an operator may do.
export interface Verb {
  name: string;
  about: string; // what it is done to
  path: string;
  says: string; // what it does
  said?: string; // what to say once the server has accepted it, if it is not done by then
  off?: string; // why it cannot be done now
  order?: string; // which a drone is chosen for, from those that could take it
  fields?: Record<string, string>; // of the request, beside the reason
  // One more field: of values, a time, or a text with suggestions.
  choice?: { name: string; label: string; values?: string[]; suggest?: string[]; value: string };
}

// verbsFor lists what somebody may do to an entity as it is.
export function verbsFor(s: Store, k: Key, may: string[]): Verb[] {
  const about = `${k.kind} ${name(s, k)}`, list: Verb[] = [];
  const add = (name: string, command: string, says: string, choice?: Verb["choice"], off?: string) => may.includes(`${k.kind}s ${command}`) && list.push({ name, about, path: pathOf(k.kind, k.id, command), says, choice, off });
  if (k.kind === "drone") {
    const d = s.all.drone.get(k.id);
    if (d && !d.grounded) add("Ground", "ground", "It gets no mission until it is released. A mission that it flies goes on.");
    if (d?.grounded) add("Release", "release", "It gets missions again.");
    if (d?.emergencyLatched) add("Clear emergency", "clear", "It gets missions again once it reports that it is well.");
  } else if (k.kind === "order") {
    const o = s.all.order.get(k.id);
    if (o && open(o)) {
      add("Priority", "priority", "The next cycle plans with it.", { name: "priority", label: "Priority", values: ["CRITICAL", "HIGH", "STANDARD"], value: o.priority ?? "STANDARD" });
      add("Deadline", "deadline", "The next cycle plans with it.", { name: "deadline", label: "Deadline", value: o.deadline ?? "" });
      const drones = [...s.all.drone.keys()].sort(), forbidden = o.forbiddenDroneIds ?? [];
      const drone = (suggest: string[], value = "") => ({ name: "droneId", label: "Drone", suggest, value });
      if (o.pinnedDroneId) add("Unpin", "unpin", `Drones other than ${o.pinnedDroneId} may take it again.`);
      if (add("Pin", "pin", "Only this drone takes it.", drone(drones.filter((id) => !forbidden.includes(id)), o.assignedDroneId))) list.at(-1)!.order = o.id;
      add("Forbid", "forbid", "This drone does not take it.", drone(drones.filter((id) => !forbidden.includes(id))));
      if (forbidden.length) add("Allow", "allow", "This drone may take it again.", { name: "droneId", label: "Drone", values: forbidden, value: forbidden[0] });
    }
    if (o?.status === "PENDING") {
      if (o.held) add("Release", "release", "It is planned again."); else add("Hold", "hold", "It is not planned until it is released.");
      add("Cancel order", "cancel", "It is not delivered. This cannot be undone.");
    }
  } else if (k.kind === "mission") {
    const m = s.all.mission.get(k.id), off = m?.recalledAt && `It was ${unconfirmed(m)}.`;
    if (m?.status === "ACTIVE") add("Recall", "recall", "What is not aboard waits for another drone. The drone delivers what is aboard or is revoked.", undefined, off);
    for (const v of list) v.said = "sent; the drone has not confirmed it yet";
  }
  return list;
}

export function acknowledge(a: Alert): Verb {
  return { name: "Acknowledge", about: a.text, path: "alerts/acknowledge", says: "It stays listed, and is no longer announced.", fields: { id: a.id } };
}
