import type { ComponentChildren } from "preact";
import type { Fact } from "./card";
import { unplanned } from "./counts";
import { Ref } from "./names";
import type { Page } from "./page";
import { full, lands, standsAt } from "./parked";
import { standing, time } from "./store";
import { decisions } from "./tables";
import type { Depot, Drone, Place } from "./types";
import { clock, plain, span } from "./words";

const soon = 15 * 60e3; // ms: drones that are free by then count as capacity
const most = 200; // drones that are listed

// depotFacts says what a depot has and what it is asked for.
export function depotFacts(p: Page, depot: Depot): Fact[] {
  const s = p.store, now = s.now(), home = [...s.all.drone.values()].filter((d) => d.homeDepotId === depot.id);
  const free = home.filter((d) => d.status === "IDLE" && able(d) && !d.currentMissionId), charging = home.filter((d) => d.status === "CHARGING");
  const later = home.filter((d) => able(d)).map((d) => ({ d, at: d.status === "CHARGING" ? full(s, d) : lands(s, d) })).filter(({ at }) => !isNaN(at)).sort((a, b) => a.at - b.at);
  const waiting = [...s.all.order.values()].filter((o) => o.planningDepotId === depot.id && unplanned(o)), slack = Math.min(...waiting.map((o) => s.slack(o)));
  const cycle = [...s.all.cycle.values()].filter((c) => c.depotId === depot.id || c.depotIds?.includes(depot.id)).sort((a, b) => time(b.startedAt) - time(a.startedAt))[0];
  const ready = later.filter(({ at }) => at <= now + soon).length;
  return [
    ["Based here", `${home.length} drones: ${free.length} free, ${charging.length} charging, ${home.filter((d) => d.currentMissionId).length} on missions`],
    ["Next drone", free.length ? "now" : later.length ? <>{<Ref p={p} k={{ kind: "drone", id: later[0].d.id }} />} at {clock(later[0].at)}</> : "none in sight"],
    ["Next slot", nextSlot(depot, charging.map((d) => full(s, d)))],
    ["Demand", waiting.length ? `${waiting.length === 1 ? "1 order waits" : `${waiting.length} orders wait`}, ${slack < 0 ? `the most urgent ${span(-slack)} late` : `the most urgent has ${span(slack)}`}` : "no order waits"],
    ["Capacity", `${free.length} drones now, ${ready} more within 15 min`],
    ["Last cycle", cycle ? <>{<Ref p={p} k={{ kind: "cycle", id: cycle.id }} />} {span(Math.max(0, now - time(cycle.startedAt)))} ago, {plain(cycle.outcome)}: {decisions(cycle)}</> : "none in the last ten minutes"],
    ["Wrong", wrong(home, waiting.length > free.length + ready)],
    ["Here", drones(p, depot.position)],
  ];
}

// able says that a drone gets missions, once it has time.
function able(d: Drone): boolean { return !d.grounded && !standing(d) && !d.emergencyLatched && !["EMERGENCY", "PROBLEM", "UNKNOWN", "MAINTENANCE"].includes(d.status); }

function nextSlot(depot: Depot, full: number[]): string {
  const slots = depot.chargingSlots ?? 0;
  if (!slots) return "each drone has one, as far as is known";
  return `${full.length >= slots ? clock(Math.min(...full)) : "now"}; ${full.length} of ${slots} in use`;
}

function wrong(home: Drone[], tooMany: boolean): string {
  const n = (text: string, of: (d: Drone) => boolean) => { const count = home.filter(of).length; return count ? `${count} ${text}` : ""; };
  return [n("in trouble", (d) => d.status === "EMERGENCY" || d.status === "PROBLEM"), n("silent", (d) => d.status === "UNKNOWN"), n("grounded", (d) => d.grounded === true), n("in maintenance", (d) => d.status === "MAINTENANCE"),
    tooMany ? "more orders wait than drones are free within 15 min" : ""].filter(Boolean).join(", ") || "nothing known";
}

const order = ["EMERGENCY", "PROBLEM", "UNKNOWN", "IDLE", "RESERVED", "CHARGING", "MAINTENANCE"];

// drones lists those that stand at a place: what its number on the map stands for.
export function drones(p: Page, at: Place): ComponentChildren {
  const s = p.store, here = [...s.marks.values()].filter((m) => standsAt(m, at)).sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status) || b.battery - a.battery);
  return here.length ? <details class="pile" open>
    <summary>{here.length === 1 ? "1 drone" : `${here.length} drones`}</summary>
    <ul>{here.slice(0, most).map((m) => <li key={m.id}><Ref p={p} k={{ kind: "drone", id: m.id }} /> {plain(m.status)}, {Math.round(m.battery)} %</li>)}</ul>
    {here.length > most && `and ${here.length - most} more`}
  </details> : "no drone";
}
