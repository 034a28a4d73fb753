import { Fragment, type ComponentChildren } from "preact";
import type { Props } from "./app";
import { depotFacts, drones } from "./depot";
import { name, Refs, said } from "./names";
import type { Page } from "./page";
import { open, plannedBy, standing, time, unconfirmed } from "./store";
import { told } from "./story";
import { fence, notServed, refused } from "./tables";
import type { Drone, Key, Kind } from "./types";
import { acknowledge, verbsFor } from "./verbs";
import { clock, distance, plain, span } from "./words";

// Card shows the selection: its facts, its alerts, and what can be done to it.
export function Card({ p }: Props) {
  const m = p.model, k = m.selected;
  if (!k) return null;
  const may = m.past ? [] : m.who?.verbs ?? [];
  const alerts = [...p.store.all.alert.values()].filter((a) => a.entity.kind === k.kind && a.entity.id === k.id);
  return <aside id="selected" data-id={k.id} aria-label="Selection">
    <button id="deselect" type="button" aria-label="Deselect" onClick={() => { p.select(null); p.map.canvas.focus(); }}>×</button>
    <h2 dir="auto">{k.kind} {name(p.store, k)}</h2>
    <p class="note" dir="auto">{name(p.store, k) !== k.id && k.id}</p>
    <dl>{facts(p, k).filter(([, text]) => text).map(([name, text]) => <Fragment key={name}><dt>{name}</dt><dd dir="auto">{text}</dd></Fragment>)}</dl>
    <div class="actions">
      {alerts.map((a) => <Fragment key={a.id}>
        <p dir="auto" class={a.urgent && !a.acknowledged ? "wrong" : "note"}>{said(p.store, a)}{a.acknowledged && ` (acknowledged by ${a.acknowledged.by}: ${a.acknowledged.reason})`}</p>
        {may.includes("alerts acknowledge") && !a.acknowledged && <button type="button" onClick={() => m.set({ verb: acknowledge(a) })}>Acknowledge</button>}
      </Fragment>)}
      {k.kind === "order" && isOpen(p, k.id) && <button type="button" onClick={() => m.set({ view: "Story", why: true })}>Why?</button>}
      {told.includes(k.kind) && <button type="button" onClick={() => p.show("Story")}>Story</button>}
      {verbsFor(p.store, k, may).map((v) => <button key={v.name} type="button" aria-disabled={v.off ? true : undefined} title={v.off} onClick={() => v.off ? p.say(v.off) : m.set({ verb: v })}>{v.name}</button>)}
    </div>
  </aside>;
}

function isOpen(p: Page, order: string): boolean { const o = p.store.all.order.get(order); return !!o && open(o); }

export type Fact = [string, ComponentChildren];

function facts(p: Page, k: Key): Fact[] {
  const refs = (kind: Kind, ids: (string | undefined)[]) => { const list = ids.filter((id) => id !== undefined); return list.length ? <Refs p={p} list={list.map((id) => ({ kind, id }))} /> : ""; };
  const s = p.store, o = s.all.order.get(k.id), d = s.all.drone.get(k.id), m = s.all.mission.get(k.id);
  if (k.kind === "order" && o) {
    return [["Status", plain(o.status)], ["Priority", plain(o.priority ?? "")], ["Product", o.productType ?? ""], ["Deadline", clock(time(o.deadline))],
      ["ETA", clock(s.eta(o))], ["Earliest", !o.assignedDroneId && o.earliestArrival && <>{clock(time(o.earliestArrival))} by {refs("drone", [o.earliestDroneId])}</>], ["Slack", span(s.slack(o))],
      ["Drone", refs("drone", [o.assignedDroneId])], ["Mission", refs("mission", [o.assignedMissionId])], ["For", o.requesterId], ["Held", o.heldReason ?? ""],
      ["Pinned to", refs("drone", [o.pinnedDroneId])], ["Forbidden to", refs("drone", o.forbiddenDroneIds ?? [])],
      ["Planned by", plannedBy(o)], ["Handed over by", s.handOvers(o).join("; ")],
      ["Waits for", (o.waiting ?? []).map((w) => `${w.depotId ?? ""} ${plain(w.reason)}`.trim()).join("; ")]];
  }
  if (k.kind === "drone" && d) {
    const mark = s.marks.get(d.id);
    return [["Status", plain(d.status)], ["Battery", mark ? `${Math.round(mark.battery)} %` : ""], ["Last report", mark ? `${span(Math.max(0, s.now() - mark.at))} ago` : "never heard of"],
      ["Position", mark ? `within ${distance(s.bound(mark))}, ${span(Math.max(0, s.now() - mark.at))} old` : ""],
      ["Mission", refs("mission", [d.currentMissionId])], ["Carries", refs("order", s.all.mission.get(d.currentMissionId ?? "")?.orderIds ?? [])], ["Grounded", d.grounded ? d.groundedReason || "yes" : ""], ["Flies failed mission", d.ghostMissionId ?? ""],
      ["Link lost", d.linkLostAt ? `since ${clock(time(d.linkLostAt))}` : ""], ...registry(d)];
  }
  if (k.kind === "mission" && m) {
    return [["Status", plain(m.status)], ["Command", m.status === "ACTIVE" ? unconfirmed(m) : ""], ["Drone", refs("drone", [m.droneId])], ["Stops", `${m.reachedStops} of ${m.route.length}`], ["Orders", refs("order", m.orderIds)]];
  }
  const c = s.all.cycle.get(k.id), depot = s.all.depot.get(k.id), warehouse = s.all.warehouse.get(k.id);
  if (k.kind === "cycle" && c) {
    return [["Depot", refs("depot", [c.depotId])], ["Began", clock(time(c.startedAt))], ["Outcome", plain(c.outcome)], ["Detail", c.detail ?? ""], ["Lock held by", c.holder ?? ""],
      ["Fence", fence(c)], ["Read", `${c.readMs} ms: ${c.drones} drones, ${c.orders} orders`], ["Solve", `${c.solveMs} ms`],
      ["Publish", `${c.publishMs} ms: ${c.missions} missions, ${c.assigned} orders`], ["Decisions", `${c.applied} applied`], ["Refused", refused(c)], ["Not served", notServed(c)],
      ["Handed over", c.handedOver ? `${c.handedOver} orders` : ""]];
  }
  if (k.kind === "depot" && depot) return depotFacts(p, depot);
  if (k.kind === "warehouse" && warehouse) return [["Position", `${warehouse.position.lat}, ${warehouse.position.lon}`], ["Here", drones(p, warehouse.position)]];
  return [["State", "not in the live view"]];
}

// registry is what operators said of a drone, and what is due next.
function registry(d: Drone): Fact[] {
  const number = (n: number | undefined, unit: string) => n ? `${n} ${unit}` : "";
  const registered = d.registeredAt ? `${d.registeredAt.slice(0, 10)}${d.registeredBy ? ` by ${d.registeredBy}` : ""}` : "";
  const serial = d.reportedSerial && d.reportedSerial !== d.serialNumber ? `${d.serialNumber ?? ""}, reports ${d.reportedSerial}` : d.serialNumber ?? "";
  const due = (d.nextDue ?? []).map((n) => `${n.item}: ${[n.at?.slice(0, 10), number(n.flightHours, "flight hours"), number(n.landings, "landings")].filter(Boolean).join(" or ") || "no more"}`);
  return [["Registered", standing(d) || registered], ["Home", d.homeDepotId ?? ""], ["Type", d.typeId ?? ""], ["Serial number", serial],
    ["Payload", number(d.payloadCapacityKg, "kg")], ["Flight time", number(d.maxFlightTimeMinutes, "min")],
    ["Cold box", d.coldBox ? `${d.coldBox.minCelsius} to ${d.coldBox.maxCelsius} °C` : d.registeredAt ? "none" : ""],
    ["Flown", d.flightSeconds ? `${(d.flightSeconds / 3600).toFixed(1)} h, ${d.landings ?? 0} landings` : ""],
    ["Battery health", d.batteryHealth === undefined ? "" : `${Math.round(d.batteryHealth)} %`], ["Due next", due.join("; ")]];
}
