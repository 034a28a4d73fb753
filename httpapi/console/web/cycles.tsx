import type { Props } from "./app";
import { Grid } from "./grid";
import { name, Ref } from "./names";
import { time } from "./store";
import { decisions, fence, notServed, quiet, refused } from "./tables";
import type { Cycle } from "./types";
import { clock, plain, span } from "./words";

const shown = 10 * 60e3; // ms
const most = 20; // cycles in words

// Cycles shows each depot's latest cycles: bars that overlap stand in two rows, a stuck depot
// has no bar at its right end, and a mark below a bar says that decisions were refused.
export function Cycles({ p }: Props) {
  const s = p.store, cycles = [...s.all.cycle.values()].sort((a, b) => time(a.startedAt) - time(b.startedAt));
  const stuck = new Set([...s.all.alert.values()].filter((a) => a.kind === "DEPOT_WITHOUT_CYCLES").map((a) => a.entity.id));
  return <div><Lanes p={p} cycles={cycles} stuck={stuck} /><Grid caption="What the latest cycles did, newest first" columns={["Time", "Depot", "What"]}
    rows={cycles.slice(-most).reverse().map((c) => [clock(time(c.startedAt)), <Ref p={p} k={{ kind: "depot", id: c.depotId }} />, cycleWords(c)])} /></div>;
}

function Lanes({ p, cycles, stuck }: Props & { cycles: Cycle[]; stuck: Set<string> }) {
  const s = p.store;
  return <>{[...s.all.depot.keys()].sort().map((id) => {
    const mine = cycles.filter((c) => c.depotId === id || c.depotIds?.includes(id));
    return <section key={id} class={stuck.has(id) ? "lane stuck" : "lane"}>
      <h2 dir="auto" title={id}>{name(s, { kind: "depot", id })}</h2>
      <p dir="auto">{latest(s.now(), mine.at(-1), stuck.has(id))}</p>
      {mine.length > 0 && <details class="technical"><summary>Technical detail</summary><p dir="auto">{technical(mine.at(-1)!)}</p></details>}
      <Bars p={p} depot={id} cycles={mine} />
      <div class="minutes" aria-hidden="true"><span>−10 min</span><span>−5 min</span><span>now</span></div>
    </section>;
  })}</>;
}

function latest(now: number, c: Cycle | undefined, stuck: boolean): string {
  if (!c) return stuck ? "No cycle while orders wait" : "No cycle yet";
  const ago = span(now - time(c.startedAt));
  return (stuck ? `No cycle for ${ago} while orders wait; in the last one` : `${ago} ago:`) + ` ${cycleWords(c)}`;
}

const outcomes: Record<string, string> = {
  PUBLISHING: "the plan is being sent", EMPTY: "nothing could be planned", FAILED: "planning failed", ABORTED: "the optimizer was stopped", LEASE_LOST: "another optimizer took over",
};

// cycleWords says what a cycle did for the orders.
function cycleWords(c: Cycle): string {
  const orders = (n: number) => n === 1 ? "1 order" : `${n} orders`, no = refused(c);
  const got = c.outcome === "PUBLISHED" ? `${orders(c.assigned)} got a drone` : c.outcome === "EMPTY" && !c.orders ? "no order waited" : (outcomes[c.outcome] ?? plain(c.outcome)) + (c.detail ? `: ${c.detail}` : "");
  return [got, no && `refused: ${no}`, c.handedOver && `${orders(c.handedOver)} went to another area`, c.unservedTotal && `${orders(c.unservedTotal)} not served: ${notServed(c)}`].filter(Boolean).join("; ");
}

function technical(c: Cycle): string {
  return `Lock held by ${c.holder ?? "nobody"}` + (c.fence ? ` with fence ${fence(c)}` : "") + `: snapshot ${c.readMs} ms, solve ${c.solveMs} ms, publish ${c.publishMs} ms; ${decisions(c)}${quiet(c)}`;
}

function Bars({ p, depot, cycles }: Props & { depot: string; cycles: Cycle[] }) {
  const now = p.store.now(), ends = [0, 0]; // of the last bar in each row
  return <svg viewBox="0 0 600 38" preserveAspectRatio="none" role="img" aria-label={`Cycles of depot ${depot} in the last ten minutes; the table lists them`}>
    {cycles.map((c) => {
      const began = time(c.startedAt), ended = isNaN(time(c.endedAt)) ? now : time(c.endedAt);
      if (ended < now - shown) return null;
      const x = Math.max(0, 600 * (1 - (now - began) / shown)), w = Math.max(3, (600 * (ended - Math.max(began, now - shown))) / shown);
      const row = began < ends[0] ? 1 : 0;
      ends[row] = Math.max(ends[row], ended);
      return <g key={c.id} class="cycle" onClick={() => p.select({ kind: "cycle", id: c.id })}>
        <title>{`${clock(began)} ${plain(c.outcome)}${quiet(c)}; ${decisions(c)}; ${c.holder ?? ""}`}</title>
        <rect x={x} y={2 + 15 * row} width={w} height={12} class={"bar " + c.outcome} />
        {refused(c) && <path d={`M${x + w / 2} 31l3 6h-6z`} class="refused" />}
      </g>;
    })}
  </svg>;
}
