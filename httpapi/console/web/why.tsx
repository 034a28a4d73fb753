import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Props } from "./app";
import { Grid } from "./grid";
import { name, Ref } from "./names";
import type { Page } from "./page";
import { ask, pathOf } from "./session";
import { time, type Store } from "./store";
import { clock, plain } from "./words";

export interface Fate { droneId?: string; missionId?: string; arrival?: string; lateMinutes: number; reason?: string; drones?: string }
export interface Candidate { droneId: string; doing: string; plannedFor?: string[]; km: number; arrival: string; joinArrival?: string; joinMinutes?: number; lacks: string[] }
interface Change { orderId: string; priority: string; before: Fate; after: Fate }
export interface Alternative { plan: Fate; worse: Change[]; better: Change[]; worseCount: number; betterCount: number }
interface Explanation {
  orderId: string; readTime: string; status: string; held?: boolean; outcome: string; recorded?: string; recordedByCycle?: string;
  why?: { plan: Fate; nearest: Candidate[]; instead?: Alternative; whatIf?: Alternative };
}

// changes are what can be asked of a moment, by the query that asks it.
const changes: Record<string, string> = {
  "": "as it was", "addDrones=1": "with one more drone at the depot", "addDrones=3": "with three more", "addSlots=3": "with three more charging slots", "dropReserve=true": "with no drone kept for CRITICAL orders",
};

// Why says on demand why an order waits, was late, or is with its drone, and what else would
// have changed. It asks by itself if the page was opened for that.
export function Why({ p, order }: Props & { order: string }) {
  const choice = useRef<HTMLSelectElement>(null), [answer, setAnswer] = useState<ComponentChildren>(null);
  const o = p.store.all.order.get(order), m = o && p.store.missionOf(o), decided = time(m?.startTime) - 1000;
  const queries = { ...changes, ...(decided > time(o?.createdAt) ? { [`at=${new Date(decided).toISOString()}`]: `when ${name(p.store, { kind: "drone", id: m!.droneId })} got it` } : {}) };
  const tell = async () => {
    const query = choice.current!.value, past = p.model.past && !query.startsWith("at=") ? `at=${new Date(p.model.past.now()).toISOString()}` : "";
    setAnswer(<p class="note">Planning that moment again…</p>);
    try {
      setAnswer(explained(p, await ask<Explanation>(pathOf("order", order, "explanation") + "?" + [query, past].filter(Boolean).join("&")), query));
    } catch (err) {
      setAnswer(<p dir="auto">It cannot be explained: {(err as Error).message}</p>);
    }
  };
  useEffect(() => { if (p.model.why) void tell(); }, [order, p.model.why]);
  return <div class="why">
    <div class="buttons">
      <button type="button" onClick={() => void tell()}>Why?</button>
      <select ref={choice} aria-label="What if">{Object.entries(queries).map(([value, text]) => <option value={value} selected={o?.status === "IN_DELIVERY" && value.startsWith("at=")}>{text}</option>)}</select>
    </div>
    <div role="status">{answer}</div>
  </div>;
}

// explained says for an order that waits what a plan does with it; for one that a drone has
// not picked up yet, what the next best drone would do.
function explained(p: Page, x: Explanation, query: string): ComponentChildren {
  const s = p.store, has = x.status !== "PENDING", o = s.all.order.get(x.orderId), why = x.why;
  const lines = [`As of ${clock(time(x.readTime))}: ${has && o?.assignedDroneId ? `with drone ${name(s, { kind: "drone", id: o.assignedDroneId })}` : x.outcome}.`];
  if (query.startsWith("at=")) lines.push("That was before its drone got it.");
  if (x.recorded) lines.push(`Cycle ${x.recordedByCycle} recorded: ${x.recorded}.`);
  if (!why) lines.push(x.status === "IN_DELIVERY" ? "It is aboard: no other drone can take it." : "It was not planned then.");
  else {
    lines.push(has ? `Its mission: ${fate(s, why.plan)}.` : `${x.held ? "If it were released, a" : "A"} new plan of that moment: ${fate(s, why.plan)}.`);
    if (why.whatIf) lines.push(`And ${changes[query]}: ${fate(s, why.whatIf.plan)}.`, ...others(s, why.whatIf));
    if (why.instead) lines.push(`With the first ${has ? "other " : ""}drone that lacks nothing: ${fate(s, why.instead.plan)}.`, ...others(s, why.instead));
    else if (has) lines.push("Every other drone lacks something for it.");
  }
  return <>
    {lines.map((line) => <p dir="auto">{line}</p>)}
    {why && <Grid caption={`The nearest ${has ? "other " : ""}drones, each with a flight for this order alone`} columns={["Drone", "Doing", "km", "Arrives", "Lacks"]}
      rows={why.nearest.map((c) => [<Ref p={p} k={{ kind: "drone", id: c.droneId }} />, c.doing, c.km.toFixed(1), clock(time(c.arrival)), lacks(c)])} />}
  </>;
}

function lacks(c: Candidate): string {
  return (c.lacks.join("; ") || "nothing") + (c.joinArrival ? `; on its mission at ${clock(time(c.joinArrival))}, ${c.joinMinutes!.toFixed(1)} min longer` : "");
}

// others says how many other orders a plan serves worse or better, and names some.
export function others(s: Store, a: Alternative): string[] {
  const part = (what: string, count: number, list: Change[]) => list.map((c) => `${what} for ${c.priority} order ${name(s, { kind: "order", id: c.orderId })}: ${fate(s, c.after)}; before: ${fate(s, c.before)}.`)
    .concat(count > list.length ? [`${what} for ${count - list.length} more orders.`] : []);
  return a.worseCount + a.betterCount ? [...part("Worse", a.worseCount, a.worse), ...part("Better", a.betterCount, a.better)] : ["No other order would change."];
}

export function fate(s: Store, f: Fate): string {
  if (!f.droneId) return `it waits, ${plain(f.reason ?? "")}${f.drones ? "; " + f.drones : ""}`;
  const drone = `drone ${name(s, { kind: "drone", id: f.droneId })}${f.missionId ? ", on a mission under way," : ""}`;
  return !f.arrival ? `${drone} delivers it` : `${drone} delivers at ${clock(time(f.arrival))}, ${f.lateMinutes > 0 ? f.lateMinutes.toFixed(1) + " min late" : "in time"}`;
}
