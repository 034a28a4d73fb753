import { troubles, worst } from "./alerts";
import type { Props } from "./app";
import { Ref, said } from "./names";
import { time } from "./store";
import type { Alert } from "./types";
import { acknowledge } from "./verbs";
import { clock, plain } from "./words";

// Worst announces the worst alert, also to screen readers. Its place stays while there is none.
export function Worst({ p }: Props) {
  const t = worst(p.live), n = [...p.live.all.alert.values()].filter((a) => !a.acknowledged).length;
  return <section id="worst" aria-label="The worst alert" class={t && "bad"}>
    <p id="critical" role="alert" dir="auto">{t && said(p.live, t.alert) + (t.effects.length ? `; it explains ${t.effects.length === 1 ? "1 alert" : `${t.effects.length} alerts`}` : "")}</p>
    {t && <button type="button" onClick={() => p.zoomTo(t.alert.entity)}>Show</button>}
    {t && <Acknowledge p={p} a={t.alert} />}
    {n > 0 && <button type="button" id="alerts" disabled={p.model.past !== null} onClick={() => p.show("Alerts")}>{n === 1 ? "1 alert" : `${n} alerts`}</button>}
    {!n && <p class="note">{p.nothing("No alerts")}</p>}
  </section>;
}

// Rail lists the alerts: causes first, with what each explains below it.
export function Rail({ p }: Props) {
  const all = troubles(p.store), shown = all.filter((t) => [t.alert, ...t.effects].some((a) => p.filter?.matches("alert", a.id) ?? true));
  return <div>
    <ul id="rail" aria-label="Alerts, causes first">{shown.map((t) => <li key={t.alert.id}>
      <Line p={p} a={t.alert} />
      {t.effects.length > 0 && <ul aria-label="What it explains">{t.effects.map((a) => <li key={a.id}><Line p={p} a={a} /></li>)}</ul>}
    </li>)}</ul>
    <p class="note">{shown.length < all.length ? `${shown.length} of ${all.length}; the filter hides the others.` : all.length ? `${all.length} in all.` : p.nothing("None.")}</p>
  </div>;
}

function Line({ p, a }: Props & { a: Alert }) {
  return <div class={`alert ${a.acknowledged ? "" : a.urgent ? "bad" : "warn"}`}>
    <p><b>{plain(a.kind)}</b> <Ref p={p} k={a.entity} /> {a.since && `since ${clock(time(a.since))}`}</p>
    <p dir="auto">{said(p.store, a)}</p>
    {a.acknowledged && <p class="note" dir="auto">Acknowledged by {a.acknowledged.by}: {a.acknowledged.reason}</p>}
    <p class="buttons"><button type="button" onClick={() => p.zoomTo(a.entity)}>Show</button><Acknowledge p={p} a={a} /></p>
  </div>;
}

function Acknowledge({ p, a }: Props & { a: Alert }) {
  if (a.acknowledged || p.model.past || !p.model.who?.verbs.includes("alerts acknowledge")) return null;
  return <button type="button" onClick={() => p.model.set({ verb: acknowledge(a) })}>Acknowledge</button>;
}
