import { button, byId, clock, el, plain, set, setIds, span } from "./dom";
import { open, standing, stopText, time, type Store } from "./store";
import type { Alert, Cycle, Drone, Entities, Key, Mission, Order } from "./types";

const most = 200; // rows; more make a page slow, and nobody reads them

// Methods, so that a table of some entities is a table of entities.
// A column of ids has one a line.
interface Column<T> { name: string; text(t: T, s: Store): string; ids?: true }
interface Table<T> { kind: "drone" | "order" | "mission" | "alert" | "cycle"; columns: Column<T>[]; rows(s: Store): T[]; tone?(t: T, s: Store): string }

const rank: Record<string, number> = { EMERGENCY: 0, PROBLEM: 1, UNKNOWN: 2, DELIVERING: 3, MOVING: 4, RESERVED: 5, IDLE: 6, CHARGING: 7 };

const orders: Table<Order> = {
  kind: "order",
  columns: [
    { name: "Order", text: (o) => o.id, ids: true },
    { name: "Priority", text: (o) => plain(o.priority ?? "") },
    { name: "Slack", text: (o, s) => span(s.slack(o)) },
    { name: "Status", text: (o) => (o.held ? "held" : plain(o.status)) },
    { name: "ETA", text: (o, s) => clock(s.eta(o)) },
    { name: "Drone", text: (o) => o.assignedDroneId ?? "", ids: true },
    { name: "Waits for", text: (o) => o.held ? o.heldReason ?? "an operator" : plain(o.waiting?.[0]?.reason ?? "") },
  ],
  rows: (s) => [...s.all.order.values()].filter(open).map((o) => [s.slack(o), o] as const)
    .sort(([a, x], [b, y]) => (a || 0) - (b || 0) || (x.id < y.id ? -1 : 1)).map(([, o]) => o),
  tone: (o, s) => s.slack(o) < 0 ? "bad" : o.priority === "CRITICAL" ? "warn" : "",
};

const drones: Table<Drone> = {
  kind: "drone",
  columns: [
    { name: "Drone", text: (d) => d.id, ids: true },
    { name: "Status", text: (d, s) => [plain(d.status), d.grounded ? "grounded" : "", standing(d), due(d, s) ? "due soon" : ""].filter(Boolean).join(", ") },
    { name: "Battery", text: (d, s) => { const m = s.marks.get(d.id); return m ? `${Math.round(m.battery)} %` : ""; } },
    { name: "Report", text: (d, s) => { const m = s.marks.get(d.id); return m ? span(Math.max(0, s.now() - m.at)) : "never"; } },
    { name: "Mission", text: (d) => d.currentMissionId ?? "", ids: true },
    { name: "Depot", text: (d) => d.homeDepotId ?? "", ids: true },
  ],
  rows: (s) => [...s.all.drone.values()].sort((a, b) => (rank[a.status] ?? 9) - (rank[b.status] ?? 9) || (a.id < b.id ? -1 : 1)),
  tone: (d, s) => d.status === "EMERGENCY" || d.status === "PROBLEM" ? "bad" : d.status === "UNKNOWN" || d.grounded || standing(d) || due(d, s) ? "warn" : "",
};

function due(d: Drone, s: Store): boolean { return [...s.all.alert.values()].some((a) => a.kind === "DRONE_DUE_SOON" && a.entity.id === d.id); }

const missions: Table<Mission> = {
  kind: "mission",
  columns: [
    { name: "Mission", text: (m) => m.id, ids: true },
    { name: "Status", text: (m) => plain(m.status) + (m.failureReason ? `: ${plain(m.failureReason)}` : "") },
    { name: "Drone", text: (m) => m.droneId, ids: true },
    { name: "Stops", text: (m) => `${m.reachedStops} of ${m.route.length}` },
    { name: "Orders", text: (m) => m.orderIds.join("\n"), ids: true },
    { name: "Next", text: (m) => { const w = m.route[m.reachedStops]; return m.status === "ACTIVE" && w ? `${stopText(w)} ${clock(time(w.eta))}` : ""; } },
  ],
  rows: (s) => [...s.all.mission.values()].sort((a, b) => (a.status === "ACTIVE" ? 0 : 1) - (b.status === "ACTIVE" ? 0 : 1) || time(b.startTime) - time(a.startTime)),
  tone: (m) => m.status === "FAILED" ? "bad" : "",
};

const alerts: Table<Alert> = {
  kind: "alert",
  columns: [
    { name: "Alert", text: (a) => plain(a.kind) },
    { name: "What", text: (a) => a.text },
    { name: "Since", text: (a) => clock(time(a.since)) },
    { name: "Acknowledged", text: (a) => a.acknowledged ? `${a.acknowledged.by}: ${a.acknowledged.reason}` : "" },
  ],
  rows: (s) => [...s.all.alert.values()].sort((a, b) => (a.acknowledged ? 1 : 0) - (b.acknowledged ? 1 : 0) || (urgent(a) ? 0 : 1) - (urgent(b) ? 0 : 1) || (a.id < b.id ? -1 : 1)),
  tone: (a) => a.acknowledged ? "" : urgent(a) ? "bad" : "warn",
};

const cycles: Table<Cycle> = {
  kind: "cycle",
  columns: [
    { name: "Cycle", text: (c) => clock(time(c.startedAt)) },
    { name: "Outcome", text: (c) => plain(c.outcome) + quiet(c) + (c.detail ? `: ${c.detail}` : "") },
    { name: "Decisions", text: (c) => decisions(c) },
    { name: "Not served", text: (c) => notServed(c) },
    { name: "Depot", text: (c) => c.depotId, ids: true },
    { name: "Lock held by", text: (c) => c.holder ?? "", ids: true },
    { name: "Fence", text: (c) => fence(c) },
    { name: "Read, solve, publish (ms)", text: (c) => `${c.readMs}, ${c.solveMs}, ${c.publishMs}` },
  ],
  rows: (s) => [...s.all.cycle.values()].sort((a, b) => time(b.startedAt) - time(a.startedAt)),
  tone: (c) => c.outcome === "FAILED" || c.outcome === "ABORTED" || c.outcome === "LEASE_LOST" ? "bad" : "",
};

// quiet says that a cycle is the latest of those without orders, which share one record.
export function quiet(c: Cycle): string { return c.withoutOrders ? `, ${c.withoutOrders} cycles without orders` : ""; }

// fence is a cycle's fence as people read it.
export function fence(c: Cycle): string { return (c.fence ?? "").replace(/^0+/, ""); }

// refused counts the decisions of a cycle that were refused, by reason.
export function refused(c: Cycle): string {
  return Object.entries(c.refused).map(([reason, n]) => `${n} ${plain(reason)}`).join(", ");
}

// decisions says what came of those of a cycle.
export function decisions(c: Cycle): string {
  const no = refused(c);
  return `${c.applied} applied` + (no && `; refused: ${no}`) + (c.handedOver ? `; ${c.handedOver} orders handed over` : "");
}

// notServed counts the orders that a cycle did not serve, by reason.
export function notServed(c: Cycle): string {
  const counts = new Map<string, number>();
  for (const u of c.unserved) counts.set(u.reason, (counts.get(u.reason) ?? 0) + 1);
  return [...counts].map(([reason, n]) => `${n} ${plain(reason)}`).join(", ") + (c.unservedTotal > c.unserved.length ? ", more" : "");
}

export function urgent(a: Alert): boolean { return a.kind.startsWith("CRITICAL"); }

export const tables = { order: orders, drone: drones, mission: missions, alert: alerts, cycle: cycles } as { [K in "order" | "drone" | "mission" | "alert" | "cycle"]: Table<Entities[K]> };

// TableView shows one table and keeps its rows' elements, so that focus and reading
// position survive a change.
export class TableView {
  readonly root = el("div");
  private body = el("tbody");
  private note = el("p", "", { class: "note" });
  private rows = new Map<string, HTMLTableRowElement>();

  constructor(private kind: keyof typeof tables, caption: string, private select: (k: Key) => void) {
    const table = el("table"), head = el("tr");
    table.append(el("caption", caption));
    for (const c of tables[kind].columns) head.append(el("th", c.name, { scope: "col" }));
    const thead = el("thead");
    thead.append(head);
    table.append(thead, this.body);
    const scroller = el("div", "", { class: "scroll" });
    scroller.append(table);
    this.root.append(scroller, this.note);
  }

  update(s: Store, selected: Key | null): void {
    const t = tables[this.kind] as Table<{ id: string }>, find = byId<HTMLInputElement>("find").value.trim().toLowerCase();
    const texts = (row: { id: string }) => t.columns.map((c) => c.text(row, s));
    const all = t.rows(s).filter((row) => !find || [row.id, ...texts(row)].some((text) => text.toLowerCase().includes(find)));
    const focus = document.activeElement as HTMLElement | null, kept = new Set<string>();
    all.slice(0, most).forEach((row, i) => {
      kept.add(row.id);
      let tr = this.rows.get(row.id);
      if (!tr) this.rows.set(row.id, (tr = this.make(row.id, t.columns.length)));
      texts(row).forEach((text, n) => {
        const cell = n ? tr.cells[n] : (tr.cells[0].firstElementChild as HTMLElement);
        if (t.columns[n].ids) setIds(cell, text); else set(cell, text);
      });
      const tone = t.tone?.(row, s) ?? "", on = selected?.kind === t.kind && selected.id === row.id;
      if (tr.className !== tone) tr.className = tone;
      tr.cells[0].firstElementChild!.setAttribute("aria-pressed", String(on));
      tr.toggleAttribute("data-selected", on);
      if (this.body.children[i] !== tr) this.body.insertBefore(tr, this.body.children[i] ?? null);
    });
    for (const [id, tr] of this.rows) if (!kept.has(id)) { tr.remove(); this.rows.delete(id); }
    if (focus && focus !== document.activeElement && focus.isConnected) focus.focus({ preventScroll: true });
    set(this.note, all.length > most ? `The first ${most} of ${all.length}. Use Find to see others.` : all.length ? `${all.length} in all.` : find ? "Nothing matches." : "None.");
  }

  private make(id: string, columns: number): HTMLTableRowElement {
    const tr = el("tr"), first = el("th", "", { scope: "row" }), act = () => this.select({ kind: this.kind, id });
    first.append(button("", act, { class: "row", dir: "auto" }));
    tr.append(first);
    for (let i = 1; i < columns; i++) tr.append(el("td", "", { dir: "auto" }));
    tr.addEventListener("click", (e) => { if (!(e.target instanceof HTMLButtonElement)) act(); });
    return tr;
  }
}
