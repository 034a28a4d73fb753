import { useEffect, useState } from "preact/hooks";
import type { Props } from "./app";
import { Grid } from "./grid";
import { name, Ref } from "./names";
import { ask, pathOf } from "./session";
import { plannedBy, stopText, time } from "./store";
import { telling, type Decision, type Event } from "./telling";
import type { Key, Mission, Order } from "./types";
import { Why } from "./why";
import { clock, plain } from "./words";

interface Step { at: string; cause: string; what: string; related: string }
interface Story { steps: Step[]; events: Event[]; decisions?: Decision[]; order?: Order; mission?: Mission; malformed?: string[] }

// told are the kinds that have a story.
export const told = ["drone", "order", "mission", "cycle"];

// StoryView tells what happened to the selection, in words; behind them is all that is recorded, as the
// command audit prints it.
export function StoryView({ p }: Props) {
  const k = p.model.selected;
  if (!k || !told.includes(k.kind)) return <p class="note">Select a drone, an order or a mission, on the map or in a table.</p>;
  return <StoryOf key={`${k.kind} ${k.id}`} p={p} k={k} />;
}

function StoryOf({ p, k }: Props & { k: Key }) {
  const [times, setTimes] = useState(0), [story, setStory] = useState<Story>(), [note, setNote] = useState("Reading…");
  useEffect(() => {
    let gone = false;
    setNote("Reading…");
    ask<Story>(pathOf(k.kind, k.id, "story")).then((s) => {
      if (gone) return;
      setStory(s);
      setNote(`${s.steps.length === 1 ? "1 step is" : s.steps.length + " steps are"} recorded, as of ${clock(p.live.now())}.`);
    }, (err: Error) => { if (!gone) setNote(`The story cannot be read: ${err.message}`); });
    return () => { gone = true; };
  }, [times]);
  return <>
    <h2 dir="auto" title={k.id}>Story of {k.kind} {name(p.store, k)}</h2>
    <button type="button" onClick={() => setTimes(times + 1)}>Read again</button>
    {k.kind === "order" && <Why p={p} order={k.id} />}
    <p class="note" role="status" dir="auto">{note}</p>
    {story && <Told p={p} s={story} />}
  </>;
}

function Told({ p, s }: Props & { s: Story }) {
  // Of an order's events only hand-overs from one depot's area to another are a cycle's.
  const { mission, order } = s, handOvers = s.events.filter((e) => e.cause === "CYCLE");
  return <>
    {s.malformed?.map((text) => <p class="wrong" dir="auto">{text}</p>)}
    {!!mission?.route.length && <Grid caption="Route" columns={["Stop", "What", "Order", "ETA", "Reached"]} rows={mission.route.map((w, i) =>
      [String(i + 1), stopText(w), w.relatedOrderId && <Ref p={p} k={{ kind: "order", id: w.relatedOrderId }} />, clock(time(w.eta)), i < mission.reachedStops ? "yes" : ""])} />}
    {order?.planningDepotId && <p dir="auto">Planned by depot {plannedBy(order)}.</p>}
    {order?.planningDepotId && handOvers.length > 0 && <Grid caption="From one area to another" columns={["Time", "Why"]} rows={handOvers.map((e) => [clock(time(e.time)), e.reason ?? ""])} />}
    <Grid caption="What happened, newest first" columns={["Time", "What"]}
      rows={telling(p.store, s.events, s.decisions ?? [], mission).reverse().map((l) => [clock(l.at), l.text])} />
    <details class="technical">
      <summary>Technical detail</summary>
      <Grid caption="As the audit has it, newest first" columns={["Time", "Cause", "What"]}
        rows={[...s.steps].reverse().map((l) => [clock(time(l.at)), plain(l.cause), l.what + (l.related ? "\n" + l.related : "")])} />
    </details>
  </>;
}
