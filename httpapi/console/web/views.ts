import { clock, el, plain, set, span, svg } from "./dom";
import { open, time, type Store } from "./store";
import { decisions, fence, notServed, quiet, refused } from "./tables";
import type { Cycle, Key, Order } from "./types";

const shown = 10 * 60e3; // ms of the cycles' time line
const samples = 360; // of the share of busy drones

// View is what the panel shows.
export interface View { root: HTMLElement; update(s: Store): void }

// TimeLine shows each depot's latest cycles: bars that overlap stand in two rows, a stuck
// depot has no bar at its right end, and a mark below a bar says that decisions were refused.
export class TimeLine implements View {
  readonly root = el("div");

  constructor(private select: (k: Key) => void) {}

  update(s: Store): void {
    const cycles = [...s.all.cycle.values()].sort((a, b) => time(a.startedAt) - time(b.startedAt));
    const stuck = new Set([...s.all.alert.values()].filter((a) => a.kind === "DEPOT_WITHOUT_CYCLES").map((a) => a.entity.id));
    this.root.replaceChildren(...[...s.all.depot.keys()].sort().map((id) => {
      const mine = cycles.filter((c) => c.depotId === id || c.depotIds?.includes(id));
      const row = el("section", "", { class: stuck.has(id) ? "lane stuck" : "lane" });
      row.append(el("h2", id, { dir: "auto" }), el("p", this.latest(s.now(), mine.at(-1), stuck.has(id)), { dir: "auto" }), this.plot(s.now(), id, mine), minutes());
      return row;
    }));
  }

  private latest(now: number, c: Cycle | undefined, stuck: boolean): string {
    if (!c) return stuck ? "No cycle while orders wait" : "No cycle yet";
    const ago = span(now - time(c.startedAt));
    return (stuck ? `No cycle for ${ago} while orders wait; the last one` : `Last cycle ${ago} ago`) + `, lock held by ${c.holder ?? "nobody"}` +
      (c.fence ? ` with fence ${fence(c)}` : "") + `: snapshot ${c.readMs} ms, solve ${c.solveMs} ms, publish ${c.publishMs} ms; ${decisions(c)}${quiet(c)}` +
      (c.unservedTotal ? `; not served: ${notServed(c)}` : "");
  }

  private plot(now: number, id: string, cycles: Cycle[]): SVGElement {
    const plot = svg("svg", { viewBox: "0 0 600 38", preserveAspectRatio: "none", role: "img", "aria-label": `Cycles of depot ${id} in the last ten minutes; the table lists them` });
    const ends = [0, 0]; // of the last bar in each row
    for (const c of cycles) {
      const began = time(c.startedAt), ended = isNaN(time(c.endedAt)) ? now : time(c.endedAt);
      if (ended < now - shown) continue;
      const x = Math.max(0, 600 * (1 - (now - began) / shown)), w = Math.max(3, (600 * (ended - Math.max(began, now - shown))) / shown);
      const line = began < ends[0] ? 1 : 0;
      ends[line] = Math.max(ends[line], ended);
      const group = svg("g", { class: "cycle" });
      group.append(svg("title", {}, `${clock(began)} ${plain(c.outcome)}${quiet(c)}; ${decisions(c)}; ${c.holder ?? ""}`), svg("rect", { x, y: 2 + 15 * line, width: w, height: 12, class: "bar " + c.outcome }));
      if (refused(c)) group.append(svg("path", { d: `M${x + w / 2} 31l3 6h-6z`, class: "refused" }));
      group.addEventListener("click", () => this.select({ kind: "cycle", id: c.id }));
      plot.append(group);
    }
    return plot;
  }
}

// minutes is the scale of a time line.
function minutes(): HTMLElement {
  const scale = el("div", "", { class: "minutes", "aria-hidden": "true" });
  for (const text of ["−10 min", "−5 min", "now"]) scale.append(el("span", text));
  return scale;
}

// Numbers shows how the last hour went, as far as this page has seen it.
export class Numbers implements View {
  readonly root = el("div", "", { class: "numbers" });
  private busy: number[] = [];

  // sample notes the share of busy drones.
  sample(s: Store): void {
    const n = s.all.drone.size;
    if (!n) return;
    this.busy.push([...s.all.drone.values()].filter((d) => d.currentMissionId).length / n);
    if (this.busy.length > samples) this.busy.shift();
  }

  update(s: Store): void {
    const now = s.now(), orders = [...s.all.order.values()], done = orders.filter((o) => o.status === "DELIVERED");
    const priorities = ["CRITICAL", "HIGH", "STANDARD"].concat([...new Set(orders.map((o) => o.priority ?? ""))]).filter((p, i, all) => p && all.indexOf(p) === i)
      .filter((p) => orders.some((o) => o.priority === p));
    const rows = priorities.map((p) => {
      const mine = done.filter((o) => o.priority === p), waits = mine.map((o) => time(o.deliveredAt) - time(o.createdAt)).sort((a, b) => a - b);
      const waiting = orders.filter((o) => open(o) && o.priority === p).length;
      return { p, share: mine.length ? mine.filter((o) => !o.late).length / mine.length : NaN, mine: mine.length, wait: waits[waits.length >> 1] ?? NaN, waiting };
    });
    const table = el("table"), head = el("tr"), body = el("tbody"), thead = el("thead");
    table.append(el("caption", "The last hour, by priority"));
    for (const name of ["Priority", "On time", "Delivered", "Median time", "Open"]) head.append(el("th", name, { scope: "col" }));
    thead.append(head);
    for (const r of rows) {
      const tr = el("tr");
      tr.append(el("th", plain(r.p), { scope: "row" }));
      for (const text of [isNaN(r.share) ? "" : `${Math.round(100 * r.share)} %`, String(r.mine), span(r.wait), String(r.waiting)]) tr.append(el("td", text));
      body.append(tr);
    }
    table.append(thead, body);
    this.root.replaceChildren(table,
      plot("Deliveries in each five minutes of the last hour", perFiveMinutes(done, now), String),
      plot("Share of drones with a mission, while this page was open", this.busy, (v) => `${Math.round(100 * v)} %`, 1));
  }
}

function perFiveMinutes(done: Order[], now: number): number[] {
  const counts = new Array<number>(12).fill(0);
  for (const o of done) {
    const i = 11 - Math.floor((now - time(o.deliveredAt)) / 300e3);
    if (i >= 0 && i < 12) counts[i]++;
  }
  return counts;
}

// plot draws bars, the newest at the right.
function plot(title: string, values: number[], label: (v: number) => string, top = Math.max(1, ...values)): HTMLElement {
  const figure = el("figure"), last = values.at(-1) ?? 0;
  figure.append(el("figcaption", `${title}: now ${label(last)}, at most ${label(Math.max(0, ...values))}`));
  const picture = svg("svg", { viewBox: "0 0 360 60", "aria-hidden": "true", preserveAspectRatio: "none" }), w = 360 / Math.max(12, values.length);
  values.forEach((v, i) => {
    const h = (56 * v) / top;
    picture.append(svg("rect", { x: 360 - w * (values.length - i), y: 60 - h, width: Math.max(0.8, w * 0.9), height: h, class: "value" }));
  });
  figure.append(picture);
  return figure;
}

// details lists what is known about the selection.
export function details(root: HTMLElement, title: string, facts: [string, string][]): void {
  let list = root.querySelector("dl");
  if (!list) root.append(el("h2", "", { dir: "auto" }), (list = el("dl")));
  set(root.querySelector("h2")!, title);
  const wanted = facts.filter(([, text]) => text);
  while (list.children.length > 2 * wanted.length) list.lastElementChild!.remove();
  while (list.children.length < 2 * wanted.length) list.append(el("dt"), el("dd", "", { dir: "auto" }));
  wanted.forEach(([name, text], i) => { set(list.children[2 * i], name); set(list.children[2 * i + 1], text); });
}
