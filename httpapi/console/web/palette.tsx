import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { worst } from "./alerts";
import type { Props } from "./app";
import { name, said } from "./names";
import { knowsPast, type Page } from "./page";
import { around } from "./replay";
import { openView, savedViews } from "./savedviews";
import { open } from "./store";
import type { Key, Kind } from "./types";
import { acknowledge, verbsFor } from "./verbs";
import { clock, plain } from "./words";

const most = 12; // choices

interface Choice { name: string; note: string; run(): void; k?: Key }

// Palette finds any entity, view or verb of the selection by what is typed, and goes there or does it.
export function Palette({ p }: Props) {
  const box = useRef<HTMLDialogElement>(null), [text, setText] = useState(""), [at, setAt] = useState(0);
  useLayoutEffect(() => { box.current!.showModal(); }, []);
  const found = useMemo(() => find(p, text), [text]), chosen = Math.min(at, found.length - 1);
  const run = (c?: Choice) => { if (!c) return; box.current!.close(); p.model.set({ pane: "" }); c.run(); };
  const onKeyDown = (e: KeyboardEvent) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step) setAt((chosen + step + found.length) % found.length); else if (e.key === "Enter") run(found[chosen]); else return;
    e.preventDefault();
  };
  return <dialog id="palette" ref={box} aria-label="Go to, or do" onClose={() => { if (p.model.pane === "palette") p.model.set({ pane: "" }); }}>
    <input type="text" role="combobox" aria-label="A name, an id, a view or a command" aria-expanded="true" aria-controls="choices" aria-autocomplete="list" aria-activedescendant={found.length ? `choice-${chosen}` : undefined}
      placeholder="A name, an id, a view or a command" maxLength={128} autocomplete="off" spellcheck={false} value={text} onInput={(e) => { setText(e.currentTarget.value); setAt(0); }} onKeyDown={onKeyDown} />
    <ul id="choices" role="listbox" aria-label="Choices">{found.map((c, i) => <li key={`${c.note} ${c.name} ${c.k?.id}`} id={`choice-${i}`} role="option" aria-selected={i === chosen} dir="auto" title={c.k?.id} onClick={() => run(c)}>{c.name} <small>{c.note}</small></li>)}</ul>
    <p class="note" role="status">{found.length ? "" : "Nothing has that name."}</p>
  </dialog>;
}

// find are the choices that a text means: those that begin with it first.
function find(p: Page, text: string): Choice[] {
  const wanted = text.trim().toLowerCase(), list: (Choice & { rank: number })[] = [];
  const add = (c: Choice, id = "", less = 0) => {
    const words = [c.name.toLowerCase(), id.toLowerCase()], at = Math.min(...words.map((w) => w.startsWith(wanted) ? 0 : w.includes(" " + wanted) ? 1 : w.includes(wanted) ? 2 : 3));
    if (at < 3) list.push({ ...c, rank: at + less });
  };
  commands(p).forEach((c) => add(c));
  const at = timeOfDay(wanted, p.live.now());
  if (!isNaN(at)) list.push({ name: `What happened at ${clock(at)}`, note: "past", rank: 0, run: () => void p.recall(at, around(at, p.live.now())) });
  if (wanted) for (const kind of ["order", "drone", "mission", "depot", "warehouse"] as Kind[]) for (const id of p.store.all[kind].keys()) {
    const k = { kind, id };
    const o = kind === "order" ? p.store.all.order.get(id) : undefined;
    add({ name: name(p.store, k), note: o ? `order, ${plain(o.status)}` : kind, k, run: () => p.zoomTo(k) }, id, o && !open(o) ? 0.5 : 0);
  }
  return list.sort((a, b) => a.rank - b.rank).slice(0, most);
}

// timeOfDay is the last moment with a time such as 14:05; NaN for another text.
function timeOfDay(text: string, now: number): number {
  const parts = /^(\d{1,2}):(\d\d)$/.exec(text);
  if (!parts || isNaN(now)) return NaN;
  const at = new Date(now).setHours(Number(parts[1]), Number(parts[2]), 0, 0);
  return at < now ? at : at - 24 * 3600e3;
}

// commands are what can be done to the selection, and where one can go.
function commands(p: Page): Choice[] {
  const m = p.model, k = m.selected, list: Choice[] = [];
  const t = m.past ? undefined : worst(p.live);
  if (t) list.push({ name: `Show: ${said(p.live, t.alert)}`, note: "the worst alert", run: () => p.zoomTo(t.alert.entity) });
  if (k) {
    const may = m.past ? [] : m.who?.verbs ?? [], about = name(p.store, k);
    for (const a of p.store.all.alert.values()) if (!a.acknowledged && a.entity.kind === k.kind && a.entity.id === k.id && may.includes("alerts acknowledge")) list.push({ name: `Acknowledge: ${said(p.store, a)}`, note: "alert", run: () => m.set({ verb: acknowledge(a) }) });
    const o = k.kind === "order" ? p.store.all.order.get(k.id) : undefined;
    if (o && open(o)) list.push({ name: `Why?: ${about}`, note: "order", run: () => m.set({ view: "Story", why: true }) });
    for (const v of verbsFor(p.store, k, may)) if (!v.off) list.push({ name: `${v.name}: ${about}`, note: k.kind, run: () => m.set({ verb: v }) });
    if (p.store.droneOf(k)) list.push({ name: m.following ? "Do not follow" : `Follow: ${about}`, note: "map", run: () => p.follow(!m.following) });
  }
  for (const v of p.views) if (m.past === null || knowsPast(v)) list.push({ name: v, note: "view", run: () => p.show(v) });
  for (const v of savedViews()) list.push({ name: v.name, note: "saved view", run: () => openView(v) });
  return [...list, { name: "Saved views", note: "page", run: () => m.set({ pane: "saved" }) }, { name: "Show the whole map", note: "map", run: () => p.map.fit() }, { name: "Show all, without a filter", note: "page", run: () => p.narrow([], "") },
    { name: "Wall", note: "page", run: () => m.set({ wall: true }) }, { name: "Deselect", note: "page", run: () => p.select(null) }];
}
