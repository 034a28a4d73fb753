import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Props } from "./app";
import { name } from "./names";
import { ask, pathOf } from "./session";
import { time } from "./store";
import { fate, others, type Alternative, type Candidate, type Fate } from "./why";
import { clock, span } from "./words";

const rest = 250; // ms after which a choice stays, while arrow keys go through the list

interface Answer { readTime: string; deadline: string; plan: Fate; candidates: Candidate[]; pinned?: Alternative }

// Candidates lists the drones that could take an order, and says what becomes of it and of
// other orders if only the chosen one may. ready is told of which drone that is known, or
// cannot be.
export function Candidates({ p, order, drone, pick, ready }: Props & { order: string; drone: string; pick(id: string): void; ready(drone: string): void }) {
  const [answer, setAnswer] = useState<Answer>(), [note, setNote] = useState("Looking for drones…"), [settled, setSettled] = useState(""), [preview, setPreview] = useState<ComponentChildren>(null);
  useEffect(() => {
    let gone = false;
    if (drone) setPreview(<p class="note">Planning with that drone…</p>); else setPreview(null);
    const wait = setTimeout(() => ask<Answer>(pathOf("order", order, "candidates") + (drone && "?drone=" + encodeURIComponent(drone))).then((a) => {
      if (gone) return;
      setAnswer(a);
      setNote("");
      if (a.pinned) setPreview(<>{[`Now: ${fate(p.store, a.plan)}.`, `Pinned: ${fate(p.store, a.pinned.plan)}.`, ...others(p.store, a.pinned)].map((line) => <p dir="auto">{line}</p>)}</>);
      setSettled(drone);
      ready(drone);
    }, (err: Error) => {
      if (gone) return;
      if (!answer) setNote(`Drones cannot be listed: ${err.message}`);
      setPreview(drone && answer ? <p class="wrong" dir="auto">What this changes cannot be planned: {err.message}</p> : null);
      setSettled(drone);
      ready(drone);
    }), answer ? rest : 0);
    return () => { gone = true; clearTimeout(wait); };
  }, [order, drone]);
  return <>
    {note && <p class="note" role="status" dir="auto">{note}</p>}
    {answer && <div class="scroll candidates">
      <table>
        <caption>Drones that could take it, the soonest first, each with a flight for this order alone</caption>
        <thead><tr>{["Drone", "Distance", "Charge", "Arrives", "Slack", "Lacks"].map((text) => <th key={text} scope="col">{text}</th>)}</tr></thead>
        <tbody>{answer.candidates.map((c) => {
          const joins = time(c.joinArrival) < time(c.arrival), at = joins ? time(c.joinArrival) : time(c.arrival), slack = time(answer.deadline) - at, m = p.store.marks.get(c.droneId);
          return <tr key={c.droneId} class={slack < 0 ? "bad" : ""} data-selected={c.droneId === drone ? "" : undefined} onClick={() => pick(c.droneId)}>
            <th scope="row"><label dir="auto" title={c.droneId}><input type="radio" name="candidate" checked={c.droneId === drone} onChange={() => pick(c.droneId)} /> {name(p.store, { kind: "drone", id: c.droneId })}</label></th>
            <td>{c.km.toFixed(1)} km</td><td>{m ? `${Math.round(m.battery)} %` : ""}</td><td>{clock(at)}</td><td>{slack < 0 ? `✕ ${span(-slack)} late` : span(slack)}</td>
            <td dir="auto">{[...c.lacks, joins ? `joins its mission, ${c.joinMinutes!.toFixed(1)} min longer` : "", c.plannedFor?.length ? `planned for ${c.plannedFor.map((id) => name(p.store, { kind: "order", id })).join(", ")}` : ""].filter(Boolean).join("; ") || "nothing"}</td>
          </tr>;
        })}</tbody>
      </table>
      {!answer.candidates.length && <p class="note">No drone of the area could fly it.</p>}
    </div>}
    <div role="status" class="preview" data-of={settled}>{preview}</div>
  </>;
}
