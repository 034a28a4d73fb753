import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Props } from "./app";
import { Grid } from "./grid";
import { Ref } from "./names";
import type { Page } from "./page";
import { ask, pathOf } from "./session";
import { time } from "./store";
import { clock, plain } from "./words";

interface Fate { droneId?: string; missionId?: string; arrival?: string; lateMinutes: number; reason?: string; drones?: string }
interface Candidate { droneId: string; doing: string; km: number; arrival: string; joinArrival?: string; joinMinutes?: number; lacks: string[] }
interface Change { orderId: string; priority: string; before: Fate; after: Fate }
interface Instead { plan: Fate; worse: Change[]; better: Change[]; worseCount: number; betterCount: number }
interface Explanation {
  readTime: string; outcome: string; recorded?: string; recordedByCycle?: string;
  why?: { plan: Fate; nearest: Candidate[]; instead?: Instead; whatIf?: Instead };
}

// changes are what can be asked of a past moment, by the query that asks it.
const changes: Record<string, string> = {
  "": "as it was", "addDrones=1": "with one more drone at the depot", "addDrones=3": "with three more", "addSlots=3": "with three more charging slots", "dropReserve=true": "with no drone kept for CRITICAL orders",
};

// Why says on demand why an order waits or was late, and what else would have changed.
export function Why({ p, order }: Props & { order: string }) {
  const choice = useRef<HTMLSelectElement>(null), [answer, setAnswer] = useState<ComponentChildren>(null);
  const tell = async () => {
    const query = choice.current!.value;
    setAnswer(<p class="note">Planning that moment again…</p>);
    try {
      setAnswer(explained(p, await ask<Explanation>(pathOf("order", order, "explanation") + (query && "?" + query)), query));
    } catch (err) {
      setAnswer(<p dir="auto">It cannot be explained: {(err as Error).message}</p>);
    }
  };
  return <div class="why">
    <div class="buttons">
      <button type="button" onClick={() => void tell()}>Why?</button>
      <select ref={choice} aria-label="What if">{Object.entries(changes).map(([value, text]) => <option value={value}>{text}</option>)}</select>
    </div>
    <div role="status">{answer}</div>
  </div>;
}

function explained(p: Page, x: Explanation, query: string): ComponentChildren {
  const lines = [`As of ${clock(time(x.readTime))}: ${x.outcome}.`], why = x.why;
  if (x.recorded) lines.push(`Cycle ${x.recordedByCycle} recorded: ${x.recorded}.`);
  if (!why) lines.push("Only orders that are pending and not held are planned.");
  else {
    lines.push(`A new plan of that moment: ${fate(why.plan)}.`);
    if (why.whatIf) lines.push(`And ${changes[query]}: ${fate(why.whatIf.plan)}.`, ...others(why.whatIf));
    if (why.instead) lines.push(`With the first drone that lacks nothing: ${fate(why.instead.plan)}.`, ...others(why.instead));
  }
  return <>
    {lines.map((line) => <p dir="auto">{line}</p>)}
    {why && <Grid caption="The nearest drones, each with a flight for this order alone" columns={["Drone", "Doing", "km", "Arrives", "Lacks"]}
      rows={why.nearest.map((c) => [<Ref p={p} k={{ kind: "drone", id: c.droneId }} />, c.doing, c.km.toFixed(1), clock(time(c.arrival)), lacks(c)])} />}
  </>;
}

function lacks(c: Candidate): string {
  return (c.lacks.join("; ") || "nothing") + (c.joinArrival ? `; on its mission at ${clock(time(c.joinArrival))}, ${c.joinMinutes!.toFixed(1)} min longer` : "");
}

// others says how many other orders a plan serves worse or better, and names some.
function others(i: Instead): string[] {
  const part = (what: string, count: number, list: Change[]) => list.map((c) => `${what} for ${c.priority} order ${c.orderId}: ${fate(c.after)}; before: ${fate(c.before)}.`)
    .concat(count > list.length ? [`${what} for ${count - list.length} more orders.`] : []);
  return i.worseCount + i.betterCount ? [...part("Worse", i.worseCount, i.worse), ...part("Better", i.betterCount, i.better)] : ["No other order would change."];
}

function fate(f: Fate): string {
  if (!f.arrival) return `it waits, ${plain(f.reason ?? "")}${f.drones ? "; " + f.drones : ""}`;
  return `drone ${f.droneId}${f.missionId ? `, on mission ${f.missionId},` : ""} delivers at ${clock(time(f.arrival))}, ${f.lateMinutes > 0 ? f.lateMinutes.toFixed(1) + " min late" : "in time"}`;
}
