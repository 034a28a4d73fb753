import { button, clock, el, grid, plain } from "./dom";
import { ask, pathOf } from "./session";
import { time } from "./store";

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

// whyButton shows, below it, why an order waits or was late, and what else would have changed.
export function whyButton(order: string): HTMLElement {
  const box = el("div", "", { class: "why" }), bar = el("div", "", { class: "buttons" }), answer = el("div", "", { role: "status" });
  const choice = el("select", "", { "aria-label": "What if" });
  for (const [value, text] of Object.entries(changes)) choice.append(el("option", text, { value }));
  bar.append(button("Why?", () => void tell(order, choice.value, answer)), choice);
  box.append(bar, answer);
  return box;
}

async function tell(order: string, query: string, answer: HTMLElement): Promise<void> {
  answer.replaceChildren(el("p", "Planning that moment again…", { class: "note" }));
  const lines: (string | HTMLElement)[] = [];
  try {
    const x = await ask<Explanation>(pathOf("order", order, "explanation") + (query && "?" + query));
    lines.push(`As of ${clock(time(x.readTime))}: ${x.outcome}.`);
    if (x.recorded) lines.push(`Cycle ${x.recordedByCycle} recorded: ${x.recorded}.`);
    if (!x.why) lines.push("Only orders that are pending and not held are planned.");
    else {
      lines.push(`A new plan of that moment: ${fate(x.why.plan)}.`);
      if (x.why.whatIf) lines.push(`And ${changes[query]}: ${fate(x.why.whatIf.plan)}.`, ...others(x.why.whatIf));
      if (x.why.instead) lines.push(`With the first drone that lacks nothing: ${fate(x.why.instead.plan)}.`, ...others(x.why.instead));
      lines.push(grid("The nearest drones, each with a flight for this order alone", ["Drone", "Doing", "km", "Arrives", "Lacks"], x.why.nearest.map((c) =>
        [c.droneId, c.doing, c.km.toFixed(1), clock(time(c.arrival)), lacks(c)])));
    }
  } catch (err) {
    lines.push(`It cannot be explained: ${(err as Error).message}`);
  }
  answer.replaceChildren(...lines.map((l) => typeof l === "string" ? el("p", l, { dir: "auto" }) : l));
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
