import type { ComponentChildren, TargetedKeyboardEvent } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Props } from "./app";
import { late, unplanned } from "./counts";
import { drag, drop } from "./drag";
import { name } from "./names";
import type { Page } from "./page";
import { full } from "./parked";
import { open, stopText, time, type Store } from "./store";
import type { Drone, Mission, Order, Waypoint } from "./types";
import { clock, plain, span } from "./words";

const minute = 60e3; // ms
const behind = 10 * minute; // what is shown of the past
const height = 44; // pixels of a row; the style sheet has it, too
const spare = 3; // rows above and below those in sight
const most = 60; // orders without a drone that are listed

// Row is a drone with what it has to do.
interface Row { drone: Drone; mission?: Mission; orders: Order[]; pinned: Order[]; rank: number; tone: string } // pinned: waits for this drone alone

// Scale is the time that is shown, and where.
interface Scale { from: number; to: number; width: number }

const trouble = new Set(["EMERGENCY", "PROBLEM", "UNKNOWN"]);

// Timeline shows what each drone has to do, and when, on one scale of time. Only the rows in
// sight are drawn.
export function Timeline({ p }: Props) {
  const box = useRef<HTMLDivElement>(null), at = useRef<HTMLButtonElement>(null), moved = useRef(false);
  const [seen, setSeen] = useState({ top: 0, height: 0, width: 0 }), [cursor, setCursor] = useState("");
  const s = p.store, now = s.now(), rows = rowsOf(p), k = p.model.selected, chosen = (k && s.droneOf(k)) ?? "";
  const look = () => { const b = box.current!; setSeen({ top: b.scrollTop, height: b.clientHeight, width: b.clientWidth }); };
  useLayoutEffect(() => {
    const sizes = new ResizeObserver(look);
    sizes.observe(box.current!);
    return () => sizes.disconnect();
  }, []);
  const place = rows.findIndex((r) => r.drone.id === cursor), cursorAt = Math.max(0, place);
  const bring = (i: number) => {
    const b = box.current!, top = i * height;
    if (top < b.scrollTop) b.scrollTop = top; else if (top + height > b.scrollTop + b.clientHeight) b.scrollTop = top + height - b.clientHeight;
  };
  useLayoutEffect(() => { // what is selected elsewhere comes in sight
    const i = rows.findIndex((r) => r.drone.id === chosen);
    if (i >= 0) { bring(i); setCursor(chosen); }
  }, [chosen]);
  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    bring(cursorAt);
    at.current?.focus({ preventScroll: true });
  }, [cursor]);
  const keys = (e: TargetedKeyboardEvent<HTMLElement>) => {
    const page = Math.max(1, Math.floor(seen.height / height) - 1), row = rows[cursorAt];
    const to = { ArrowDown: cursorAt + 1, ArrowUp: cursorAt - 1, PageDown: cursorAt + page, PageUp: cursorAt - page, Home: 0, End: rows.length - 1 }[e.key];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!row || (to === undefined && step === undefined)) return;
    e.preventDefault();
    if (to !== undefined) {
      const next = rows[Math.min(rows.length - 1, Math.max(0, to))].drone.id;
      moved.current = next !== cursor;
      setCursor(next);
    } else {
      const ids = deliveries(row).map((w) => w.relatedOrderId!), i = ids.indexOf(k?.id ?? "") + step!;
      if (ids.length) p.select({ kind: "order", id: ids[Math.min(ids.length - 1, Math.max(0, i))] });
    }
  };
  const first = Math.max(0, Math.floor(seen.top / height) - spare), last = Math.min(rows.length, Math.ceil((seen.top + seen.height) / height) + spare);
  const shown = rows.map((row, i) => ({ row, i })).filter(({ i }) => (i >= first && i < last) || i === cursorAt);
  const scale: Scale = { from: now - behind, to: now + p.model.ahead * minute, width: isNaN(now) ? 0 : Math.max(0, seen.width - names) };
  return <div class="timeline">
    <Unplanned p={p} />
    <div class="axis">
      <label>Show <select value={p.model.ahead} onChange={(e) => p.model.set({ ahead: Number(e.currentTarget.value) })}>
        {[30, 60, 120, 240].map((n) => <option key={n} value={n}>{n < 60 ? `${n} min` : `${n / 60} h`}</option>)}</select></label>
      {scale.width > 0 && <Axis scale={scale} now={now} />}
    </div>
    <div class="rows" ref={box} onScroll={look}>
      <ul style={{ height: `${rows.length * height}px` }} aria-label="Drones, those in trouble first. Arrow keys go up and down the drones, and left and right along the orders of one." onKeyDown={keys}>
        {shown.map(({ row, i }) => {
          const d = row.drone, on = i === cursorAt;
          return <li key={d.id} class={row.tone} data-selected={d.id === chosen ? "" : undefined} aria-setsize={rows.length} aria-posinset={i + 1}
            style={{ top: `${i * height}px` }} {...drop(p, () => d.id)}>
            <button type="button" ref={on ? at : undefined} tabIndex={on ? 0 : -1} dir="auto" title={d.id} aria-pressed={k?.kind === "drone" && k.id === d.id}
              aria-label={told(s, row)} onFocus={() => setCursor(d.id)} onClick={() => p.select({ kind: "drone", id: d.id })}>
              <span>{name(s, { kind: "drone", id: d.id })}</span> <small>{state(s, d)}</small>
            </button>
            {scale.width > 0 && <svg width={scale.width} height={height} aria-hidden="true"><Lane p={p} row={row} scale={scale} /></svg>}
          </li>;
        })}
      </ul>
      {scale.width > 0 && <i class="now" style={{ left: `${names + x(scale, now)}px`, height: `${Math.max(rows.length * height, seen.height)}px` }} />}
    </div>
    <p class="note">{rows.length === s.all.drone.size ? `${rows.length} drones.` : `${rows.length} of ${s.all.drone.size} drones; the filter hides the others.`} ◆ delivery, □ pickup, ⚑ deadline, ✕ late; what is done is grey.</p>
  </div>;
}

const names = 120; // pixels of the drones' names; the style sheet has it, too

function x(c: Scale, at: number): number { return (c.width * (at - c.from)) / (c.to - c.from); }

function rowsOf(p: Page): Row[] {
  const s = p.store, waiting = [...s.all.order.values()].filter((o) => open(o) && o.pinnedDroneId);
  const rows = [...s.all.drone.values()].filter((d) => p.filter?.matches("drone", d.id) ?? true).map((d): Row => {
    const m = s.all.mission.get(d.currentMissionId ?? ""), mission = m?.status === "ACTIVE" ? m : undefined;
    const orders = (mission?.orderIds ?? []).map((id) => s.all.order.get(id)).filter((o) => o !== undefined && open(o)) as Order[];
    const pinned = waiting.filter((o) => o.pinnedDroneId === d.id), bad = trouble.has(d.status), tooLate = orders.some((o) => s.slack(o) < 0);
    const rank = bad ? 0 : tooLate ? 1 : pinned.length ? 2 : mission ? 3 : d.status === "CHARGING" ? 4 : 5;
    return { drone: d, mission, orders, pinned: pinned.filter((o) => !o.assignedDroneId), rank, tone: bad || tooLate ? "bad" : d.grounded ? "warn" : "" };
  });
  return rows.sort((a, b) => a.rank - b.rank || (a.drone.id < b.drone.id ? -1 : 1));
}

function state(s: Store, d: Drone): string {
  const m = s.marks.get(d.id);
  return (d.grounded ? "grounded" : plain(d.status)) + (m ? `, ${Math.round(m.battery)} %` : "");
}

function deliveries(row: Row): Waypoint[] {
  return row.mission?.route.filter((w) => w.type === "HOSPITAL_DELIVERY" && row.orders.some((o) => o.id === w.relatedOrderId)) ?? [];
}

// told is a row in words.
function told(s: Store, row: Row): string {
  const d = row.drone, orders = deliveries(row).map((w) => {
    const o = s.all.order.get(w.relatedOrderId!)!, left = s.slack(o);
    return `${name(s, { kind: "order", id: o.id })} at ${clock(time(w.eta))}, ${left < 0 ? span(-left) + " late" : span(left) + " before its deadline"}`;
  });
  const pinned = row.pinned.map((o) => `${name(s, { kind: "order", id: o.id })} is pinned to it`);
  return [`${name(s, { kind: "drone", id: d.id })} ${state(s, d)}`, ...orders, ...pinned, !row.mission && d.status === "CHARGING" ? `full at ${clock(full(s, d))}` : ""].filter(Boolean).join("; ");
}

// Lane draws what a drone has to do: bars for flights, charging and waiting, and marks for
// stops and deadlines.
function Lane({ p, row, scale }: Props & { row: Row; scale: Scale }) {
  const s = p.store, now = s.now(), { drone, mission } = row, parts: ComponentChildren[] = [];
  const bar = (kind: string, from: number, to: number, text: string) => {
    const a = Math.max(from, scale.from), b = Math.min(to, scale.to);
    if (b > a) parts.push(<rect key={`${kind} ${from}`} class={kind} x={x(scale, a)} y={kind === "leg" || kind === "done" ? 25 : 22} width={Math.max(2, x(scale, b) - x(scale, a))} height={kind === "leg" || kind === "done" ? 4 : 10}><title>{text}</title></rect>);
  };
  row.pinned.forEach((o) => deadline(parts, s, o, NaN, scale));
  if (row.pinned.length) parts.push(<text key="pinned" class="pinned" x={x(scale, now) + 6} y={15}>pinned: {row.pinned.map((o) => name(s, { kind: "order", id: o.id })).join(", ")}</text>);
  if (!mission) {
    if (drone.status === "CHARGING") bar("charge", time(drone.parkedSince) || now, full(s, drone), `charging, full at ${clock(full(s, drone))}`);
    return <>{parts}</>;
  }
  let left = time(mission.startTime), free = -Infinity; // free: from where on a label has room
  const marks: ComponentChildren[] = [];
  mission.route.forEach((w, i) => {
    const at = time(w.eta), reached = i < mission.reachedStops, o = s.all.order.get(w.relatedOrderId ?? "");
    if (isNaN(at)) return;
    if (at > left) bar(reached ? "done" : "leg", left, at, `${reached ? "flew" : "flies"} to ${stopText(w)}, ${clock(at)}`);
    left = at;
    if (w.type === "WAIT" && time(w.waitUntil) > at) bar("wait", at, (left = time(w.waitUntil)), stopText(w));
    const next = time(mission.route[i + 1]?.eta);
    if (w.type === "CHARGE" && next > at) bar("charge", at, (left = next), stopText(w));
    const px = x(scale, at);
    if (at < scale.from || at > scale.to || w.type === "DEPOT_START") return;
    if (w.type !== "HOSPITAL_DELIVERY" || !o) {
      marks.push(<Mark key={`stop ${i}`} kind={w.type === "WAREHOUSE_PICKUP" ? "pickup" : "stop"} reached={reached} x={px} text={`${stopText(w)}, ${clock(at)}`} act={() => p.select({ kind: "mission", id: mission.id })} />);
      return;
    }
    const room = !reached && px - 6 > free, tooLate = !reached && s.slack(o) < 0, who = o.requesterId ?? name(s, { kind: "order", id: o.id });
    const text = `${who} ${tooLate ? `${span(-s.slack(o))} late` : !reached && at < now ? "overdue" : clock(at).slice(-8, -3)}`.slice(0, Math.max(0, Math.floor((scale.width - px) / 7)));
    if (room) free = px + 6.5 * text.length;
    marks.push(<Mark key={`stop ${i}`} kind={tooLate ? "late" : "delivery"} reached={reached} x={px} label={room ? text : ""} chosen={p.model.selected?.id === o.id}
      text={`${name(s, { kind: "order", id: o.id })}, ${clock(at)}; deadline ${clock(time(o.deadline))}`} act={() => p.select({ kind: "order", id: o.id })} />);
    if (!reached) deadline(parts, s, o, at, scale);
  });
  return <>{parts}{marks}</>;
}

// deadline draws an order's deadline, and the time between it and the delivery, if one is planned.
function deadline(parts: ComponentChildren[], s: Store, o: Order, at: number, scale: Scale): void {
  const due = time(o.deadline), kind = s.slack(o) < 0 || late(o, s) ? "late" : o.priority ?? "STANDARD";
  const a = Math.max(scale.from, Math.min(at, due)), b = Math.min(scale.to, Math.max(at, due));
  if (b > a) parts.push(<rect key={`slack ${o.id}`} class={`slack ${kind}`} x={x(scale, a)} y={35} width={x(scale, b) - x(scale, a)} height={3} />);
  if (due < scale.from || due > scale.to) return;
  const px = x(scale, due);
  parts.push(<path key={`due ${o.id}`} class={`due ${kind}`} d={`M${px} 41v-20l7 4-7 4`}><title>{`deadline of ${name(s, { kind: "order", id: o.id })}, ${clock(due)}`}</title></path>);
}

const shapes: Record<string, string> = { delivery: "M0-7l6 7-6 7-6-7z", late: "M-6-6L6 6M6-6L-6 6", pickup: "M-4-4h8v8h-8z", stop: "M0-6v12" };

function Mark({ kind, reached, x, text, label, chosen, act }: { kind: string; reached: boolean; x: number; text: string; label?: string; chosen?: boolean; act(): void }) {
  return <g class={`mark ${kind}${reached ? " reached" : ""}${chosen ? " chosen" : ""}`} transform={`translate(${x} 27)`} onClick={act}>
    <title>{text}</title>
    <rect class="hit" x={-10} y={-20} width={20} height={36} />
    <path d={shapes[kind]} />
    {label && <text x={-5} y={-13}>{label}</text>}
  </g>;
}

function Axis({ scale, now }: { scale: Scale; now: number }) {
  const all = scale.to - scale.from, step = [5, 10, 30, 60].find((n) => (scale.width * n * minute) / all > 64) ?? 60, ticks: number[] = [];
  for (let t = Math.ceil(scale.from / (step * minute)) * step * minute; t < scale.to; t += step * minute) if (Math.abs(x(scale, t) - x(scale, now)) > 44) ticks.push(t);
  return <svg width={scale.width} height={30} aria-hidden="true">
    {ticks.filter((t) => x(scale, t) > 18 && x(scale, t) < scale.width - 18).map((t) => <text key={t} x={x(scale, t)} y={20}>{clock(t).slice(-8, -3)}</text>)}
    <text class="at" x={x(scale, now)} y={20}>now</text>
  </svg>;
}

// Unplanned lists the orders that no drone has; each can be dragged to a drone.
function Unplanned({ p }: Props) {
  const s = p.store, all = [...s.all.order.values()].filter((o) => unplanned(o) && (p.filter?.matches("order", o.id) ?? true))
    .map((o) => ({ o, left: s.slack(o) })).sort((a, b) => a.left - b.left || (a.o.id < b.o.id ? -1 : 1));
  return <section class="unplanned" aria-label="Orders without a drone">
    <b>No drone: {all.length}</b>
    <ul>{all.slice(0, most).map(({ o, left }) => <li key={o.id} {...drag(p, o.id)}>
      <button type="button" class={left < 0 ? "bad" : o.priority === "CRITICAL" ? "warn" : ""} dir="auto" title={o.id} aria-pressed={p.model.selected?.id === o.id}
        onClick={() => p.select({ kind: "order", id: o.id })}>{name(s, { kind: "order", id: o.id })} <small>{left < 0 ? `✕ ${span(-left)} late` : span(left)}</small></button>
    </li>)}</ul>
    {all.length > most && <small>and {all.length - most} more</small>}
  </section>;
}
