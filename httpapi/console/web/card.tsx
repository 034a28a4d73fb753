import { Fragment } from "preact";
import type { Props } from "./app";
import type { Page } from "./page";
import { plannedBy, standing, time } from "./store";
import { told } from "./story";
import { fence, notServed, refused, urgent } from "./tables";
import type { Drone, Key } from "./types";
import { acknowledge, verbsFor } from "./verbs";
import { clock, plain, span } from "./words";

// Card shows the selection: its facts, its alerts, and what can be done to it.
export function Card({ p }: Props) {
  const m = p.model, k = m.selected;
  if (!k) return null;
  const may = m.past ? [] : m.who?.verbs ?? [];
  const alerts = [...p.store.all.alert.values()].filter((a) => a.entity.kind === k.kind && a.entity.id === k.id);
  return <aside id="selected" aria-label="Selection" inert={m.frame !== null}>
    <button id="deselect" type="button" aria-label="Deselect" onClick={() => { p.select(null); p.map.canvas.focus(); }}>×</button>
    <h2 dir="auto">{k.kind} {k.id}</h2>
    <dl>{facts(p, k).filter(([, text]) => text).map(([name, text]) => <Fragment key={name}><dt>{name}</dt><dd dir="auto">{text}</dd></Fragment>)}</dl>
    <div class="actions">
      {alerts.map((a) => <Fragment key={a.id}>
        <p dir="auto" class={urgent(a) && !a.acknowledged ? "wrong" : "note"}>{a.text}{a.acknowledged && ` (acknowledged by ${a.acknowledged.by}: ${a.acknowledged.reason})`}</p>
        {may.includes("alerts acknowledge") && !a.acknowledged && <button type="button" onClick={() => m.set({ verb: acknowledge(a) })}>Acknowledge</button>}
      </Fragment>)}
      {told.includes(k.kind) && <button type="button" onClick={() => p.show("Story")}>Story</button>}
      {verbsFor(p.store, k, may).map((v) => <button key={v.name} type="button" onClick={() => m.set({ verb: v })}>{v.name}</button>)}
    </div>
  </aside>;
}

function facts(p: Page, k: Key): [string, string][] {
  const s = p.store, o = s.all.order.get(k.id), d = s.all.drone.get(k.id), m = s.all.mission.get(k.id);
  if (k.kind === "order" && o) {
    return [["Status", plain(o.status)], ["Priority", plain(o.priority ?? "")], ["Product", o.productType ?? ""], ["Deadline", clock(time(o.deadline))],
      ["ETA", clock(s.eta(o))], ["Slack", span(s.slack(o))], ["Drone", o.assignedDroneId ?? ""], ["Held", o.heldReason ?? ""],
      ["Pinned to", o.pinnedDroneId ?? ""], ["Forbidden to", (o.forbiddenDroneIds ?? []).join(", ")],
      ["Planned by", plannedBy(o)], ["Handed over by", s.handOvers(o).join("; ")],
      ["Waits for", (o.waiting ?? []).map((w) => `${w.depotId ?? ""} ${plain(w.reason)}`.trim()).join("; ")]];
  }
  if (k.kind === "drone" && d) {
    const mark = s.marks.get(d.id);
    return [["Status", plain(d.status)], ["Battery", mark ? `${Math.round(mark.battery)} %` : ""], ["Last report", mark ? `${span(Math.max(0, s.now() - mark.at))} ago` : "never heard of"],
      ["Mission", d.currentMissionId ?? ""], ["Grounded", d.grounded ? d.groundedReason || "yes" : ""], ["Flies failed mission", d.ghostMissionId ?? ""],
      ["Link lost", d.linkLostAt ? `since ${clock(time(d.linkLostAt))}` : ""], ...registry(d)];
  }
  if (k.kind === "mission" && m) {
    return [["Status", plain(m.status)], ["Drone", m.droneId], ["Stops", `${m.reachedStops} of ${m.route.length}`], ["Orders", m.orderIds.join(", ")]];
  }
  const c = s.all.cycle.get(k.id), house = s.all.depot.get(k.id) ?? s.all.warehouse.get(k.id);
  if (k.kind === "cycle" && c) {
    return [["Depot", c.depotId], ["Began", clock(time(c.startedAt))], ["Outcome", plain(c.outcome)], ["Detail", c.detail ?? ""], ["Lock held by", c.holder ?? ""],
      ["Fence", fence(c)], ["Read", `${c.readMs} ms: ${c.drones} drones, ${c.orders} orders`], ["Solve", `${c.solveMs} ms`],
      ["Publish", `${c.publishMs} ms: ${c.missions} missions, ${c.assigned} orders`], ["Decisions", `${c.applied} applied`], ["Refused", refused(c)], ["Not served", notServed(c)],
      ["Handed over", c.handedOver ? `${c.handedOver} orders` : ""]];
  }
  if (house && (k.kind === "depot" || k.kind === "warehouse")) return [["Name", house.name ?? ""], ["Position", `${house.position.lat}, ${house.position.lon}`]];
  return [["State", "not in the live view"]];
}

// registry is what operators said of a drone, and what is due next.
function registry(d: Drone): [string, string][] {
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
