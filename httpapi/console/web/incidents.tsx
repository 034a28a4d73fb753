import { useEffect, useState } from "preact/hooks";
import type { Props } from "./app";
import type { Page } from "./page";
import { ask } from "./session";
import { time } from "./store";
import { clock } from "./words";

// Incident is something that goes wrong on purpose in a trial. It has what went wrong, and where to look, once it was started.
export interface Incident { name: string; does: string; what?: string; console?: string; terminal?: string; until?: string }

const again = 2000; // ms between two looks at which incidents are under way

// practises reports whether whoever is signed in may start incidents: in a trial alone.
export function practises(p: Page): boolean { return p.model.who?.verbs.includes("dev incidents start") ?? false; }

// Incidents is a menu of what can go wrong in a trial, with what to look at.
export function Incidents({ p }: Props) {
  const [list, setList] = useState<Incident[]>([]), [wrong, setWrong] = useState("");
  const look = () => ask<{ incidents: Incident[] }>("dev/incidents").then((r) => {
    for (const i of r.incidents) if (i.what) p.begun.set(i.name, i);
    setList(r.incidents);
  });
  const failed = (err: Error) => setWrong(err.message), may = practises(p);
  useEffect(() => {
    if (!may) return;
    look().catch(failed);
    const timer = setInterval(() => { look().catch(() => undefined); }, again); // the page says if nobody answers
    return () => clearInterval(timer);
  }, [may]);
  const tell = (name: string, last: "" | "/end") => {
    setWrong("");
    ask<Incident>(`dev/incidents/${name}${last}`, {}).then((i) => { if (!last) p.begun.set(name, i); return look(); }).catch((err: Error) => setWrong(`${name}: ${err.message}`));
  };
  if (!may) return <p class="note">{p.nothing("Incidents can be started by an operator of a trial: dronefleet dev --operator.")}</p>;
  return <div>
    <p class="note">What can go wrong on purpose in this trial. Times are the fleet's.</p>
    <p role="alert" class="wrong" dir="auto">{wrong}</p>
    <ul id="incidents" aria-label="Incidents">{list.map((i) => {
      const begun = p.begun.get(i.name), underWay = i.what !== undefined;
      return <li key={i.name} class={`alert ${underWay ? "warn" : ""}`}>
        <p><b>{i.name}</b> {i.does}</p>
        {begun && <p dir="auto">{begun.what}</p>}
        {begun && <p><b>Look at</b> {begun.console}</p>}
        {begun && <p><b>At a terminal</b> <code>{begun.terminal}</code></p>}
        {begun && <p class="note" role="status">{underWay ? begun.until ? `Under way until ${clock(time(begun.until))}` : "Under way" : begun.until ? "Over" : ""}</p>}
        <p class="buttons">{underWay ? <button type="button" onClick={() => tell(i.name, "/end")} aria-label={`End ${i.name}`}>End</button> :
          <button type="button" onClick={() => tell(i.name, "")} aria-label={`Start ${i.name}`}>Start</button>}</p>
      </li>;
    })}</ul>
  </div>;
}
