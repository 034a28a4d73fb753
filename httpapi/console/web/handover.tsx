import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Props } from "./app";
import { late, unplanned } from "./counts";
import { Grid } from "./grid";
import { name, Ref, said } from "./names";
import type { Page } from "./page";
import { ask } from "./session";
import { standing, time } from "./store";
import { telling, type Event } from "./telling";
import type { Alert, Drone, Order } from "./types";
import { clock, local, plain, span } from "./words";

interface Step { at: string; what: string; by?: string }
interface Report { since: string; readTime: string; orders: Order[]; drones: Drone[]; alerts: Alert[]; steps: Step[]; events: Event[]; malformed?: string[] }

const hour = 3600e3, soon = 120e3; // ms; orders with less slack are at risk

// Handover is what the next shift should know, on the screen or on paper.
export function Handover({ p }: Props) {
  const since = useRef<HTMLInputElement>(null), [report, setReport] = useState<Report>(), [note, setNote] = useState("Reading…"), now = p.live.now();
  const from = isNaN(p.model.since) ? now - 8 * hour : p.model.since, known = !isNaN(now);
  const read = (from: number) => {
    setNote("Reading…");
    ask<Report>("handover?since=" + encodeURIComponent(new Date(from).toISOString())).then((r) => { setReport(r); setNote(""); }, (err: Error) => setNote(`The hand-over cannot be read: ${err.message}`));
  };
  useEffect(() => { if (known) read(from); }, [known]);
  const choose = (from: number) => { if (isNaN(from)) return; p.model.set({ since: from }); read(from); };
  return <div>
    <div class="choose">
      <label>Since<input ref={since} type="datetime-local" step="60" key={String(p.model.since)} defaultValue={local(from)} /></label>
      <button type="button" onClick={() => choose(Date.parse(since.current!.value))}>Read</button>
      {[8, 12].map((hours) => <button key={hours} type="button" onClick={() => choose(p.live.now() - hours * hour)}>{hours} h</button>)}
      <button type="button" disabled={!report} onClick={() => print()}>Print</button>
    </div>
    <p class="note" role="status" dir="auto">{note}</p>
    {report && <Told p={p} r={report} />}
  </div>;
}

function Told({ p, r }: Props & { r: Report }) {
  const s = p.live, slack = (o: Order) => s.slack(o), risky = r.orders.filter((o) => !o.held && slack(o) < soon), held = r.orders.filter((o) => o.held);
  const others = r.orders.filter((o) => !o.held && slack(o) >= soon), open = r.alerts.filter((a) => !a.acknowledged), noted = r.alerts.filter((a) => a.acknowledged);
  const due = open.filter((a) => a.kind === "DRONE_DUE_SOON").length, overdue = risky.filter((o) => late(o, s)).length;
  const orders = (caption: string, list: Order[]) => list.length > 0 && <Grid caption={caption} columns={["Order", "Priority", "Slack", "Drone", "Waits for"]}
    rows={list.map((o) => [<Ref p={p} k={{ kind: "order", id: o.id }} />, plain(o.priority ?? ""), span(slack(o)), o.assignedDroneId && <Ref p={p} k={{ kind: "drone", id: o.assignedDroneId }} />, plain(o.waiting?.[0]?.reason ?? "")])} />;
  const section = (title: string, none: string, ...parts: ComponentChildren[]) => <section><h3>{title}</h3>{parts.some(Boolean) ? parts : <p>{none}</p>}</section>;
  const numbers = [`Open orders: ${r.orders.length}, of them ${risky.length} late or at risk (${overdue} past the deadline), ${r.orders.filter(unplanned).length} without a drone, ${held.length} held`,
    `Drones that take no mission: ${r.drones.length}; due soon: ${due}`, `Alerts: ${open.length} that nobody has taken note of, ${noted.length} acknowledged`];
  return <>
    <h2>Hand-over at {clock(time(r.readTime))}, since {clock(time(r.since))}</h2>
    <p>{numbers.join(". ")}.</p>
    {section("Open and at risk", "No order is late or at risk.", orders("Late or at risk, the most urgent first", risky))}
    {section("What to watch", "Nothing.",
      held.length > 0 && <Grid caption="Held orders" columns={["Order", "Priority", "Why"]} rows={held.map((o) => [<Ref p={p} k={{ kind: "order", id: o.id }} />, plain(o.priority ?? ""), o.heldReason ?? ""])} />,
      r.drones.length > 0 && <Grid caption="Drones that take no mission until somebody acts" columns={["Drone", "Why", "Last report"]} rows={r.drones.map((d) => [<Ref p={p} k={{ kind: "drone", id: d.id }} />, idle(d), clock(time(d.lastUpdate)) || "never"])} />,
      open.length > 0 && <Grid caption="Alerts that nobody has taken note of" columns={["Since", "What"]} rows={open.map((a) => [clock(time(a.since)), said(s, a)])} />,
      noted.length > 0 && <Grid caption="Acknowledged alerts" columns={["Since", "What", "By", "Why"]} rows={noted.map((a) => [clock(time(a.since)), said(s, a), a.acknowledged!.by, a.acknowledged!.reason])} />)}
    {section("What people did", "Nobody changed anything.", r.steps.length > 0 && <Grid caption={`Since ${clock(time(r.since))}, oldest first`} columns={["Time", "What"]} rows={deeds(p, r)} />)}
    {section("Other open orders", "None.", orders("In time, as planned", others))}
    {r.malformed?.map((text) => <p class="wrong" dir="auto">{text}</p>)}
  </>;
}

// idle says why a drone takes no mission.
function idle(d: Drone): string {
  return [d.status === "UNKNOWN" ? "silent" : ["PROBLEM", "EMERGENCY", "MAINTENANCE"].includes(d.status) ? plain(d.status) : "", d.grounded ? `grounded: ${d.groundedReason ?? ""}` : "", d.emergencyLatched ? "its emergency is not cleared" : "", standing(d)].filter(Boolean).join("; ") || plain(d.status);
}

// deeds are the changes in words, and what else people did as the audit has it.
function deeds(p: Page, r: Report): string[][] {
  const changed = new Set(r.events.map((e) => `${time(e.time)} ${e.entity} ${e.id}`));
  const other = r.steps.filter((l) => !changed.has(`${time(l.at)} ${l.what.split(":")[0]}`)).map((l) => ({ at: time(l.at), text: `${l.by ?? "somebody"}: ${named(p, l.what)}` }));
  return [...telling(p.live, r.events, []), ...other].sort((a, b) => a.at - b.at).map((l) => [clock(l.at), l.text]);
}

// named is a step with the name of the order that it tells of.
function named(p: Page, what: string): string {
  return what.replace(/^alert (\w+):([^:]+): /, (_, kind: string, id: string) => `${plain(kind)}, ${name(p.live, { kind: p.live.all.order.has(id) ? "order" : p.live.all.depot.has(id) ? "depot" : "drone", id })}: `);
}
