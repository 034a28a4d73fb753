import { worst } from "./alerts";
import { counts, numberOf } from "./counts";
import { Filter } from "./filter";
import { practises, type Incident } from "./incidents";
import type { FleetMap } from "./map";
import { Model, views, type Theme, type ViewName } from "./model";
import { said } from "./names";
import { around, Replay, spanOf, type Span } from "./replay";
import { session } from "./session";
import { Siren } from "./siren";
import { Store } from "./store";
import { Stream } from "./stream";
import type { Key, Place } from "./types";
import { verbsFor } from "./verbs";
import { clock, server } from "./words";

const sampling = 15e3, samples = 60; // ms between samples of the counts, and how many are kept
const near = 12000; // pixels a degree: close enough to tell two drones apart

// Page has what its components show, and what people do to it beside commands.
export class Page {
  readonly live = new Store();
  readonly model: Model;
  readonly stream: Stream;
  replay: Replay | null = null; // of the past, also while its first part is read
  readonly history = new Map<string, number[]>(); // of each count, a sample every 15 s
  readonly begun = new Map<string, Incident>(); // incidents of a trial as they were started last, by name
  filter: Filter | null = null; // null shows all
  map!: FleetMap; // set by its component
  dark = false; // as the style sheet has it
  private sampled = NaN; // when, by the server's clock
  private siren = new Siren();

  // draw brings the page up to date, all but the map.
  constructor(private draw: () => void) {
    this.model = new Model(() => this.refresh());
    this.stream = new Stream(this.live, () => { if (!this.model.past) this.map.redraw(); });
    server.now = () => this.live.now();
  }

  // store is the fleet that is shown: as it is, or as it was.
  get store(): Store { return this.model.past ?? this.live; }

  // nothing says that there is none of something, or that it is not known yet.
  nothing(none: string): string { return this.knows ? none : "Not known yet: waiting for the State Manager."; }

  // knows reports whether what is shown is the whole fleet.
  get knows(): boolean { return this.model.past !== null || this.stream.whole; }

  // start begins to show the fleet.
  start(): void {
    this.restyle();
    void this.restore();
    addEventListener("popstate", () => void this.restore());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    setInterval(() => {
      this.refresh();
      if (this.model.past) return;
      this.map.redraw(); // drones pale as their reports age
      this.stream.look(this.map.sees());
    }, 1000);
    void this.identify();
    setInterval(() => void this.identify(), 20 * 60e3);
    setInterval(() => { if (this.stream.state === "refused") void this.identify(); }, 5000);
  }

  refresh(): void {
    const m = this.model, find = m.find.trim().toLowerCase();
    this.filter = find || m.only.length ? new Filter(this.store, find, m.only) : null;
    this.sample();
    const root = document.documentElement.dataset;
    root.state = this.stream.state === "live" && this.stream.delay > 0 ? "lost" : this.stream.state;
    if (m.past) root.past = ""; else delete root.past;
    const t = worst(this.live), n = [...this.live.all.alert.values()].filter((a) => a.urgent && !a.acknowledged).length;
    document.title = (m.past ? `Past ${clock(m.past.now())} | ` : "") + (t ? `(${n}) ${said(this.live, t.alert)}` : "DroneFleet console");
    this.draw();
    this.siren.hear(this.live, m.sound);
  }

  // views lists those that there are for whoever is signed in.
  get views(): ViewName[] { return views.filter((v) => v !== "Incidents" || practises(this)); }

  show(view: ViewName): void { this.model.set({ view, why: false }); }

  select(k: Key | null): void {
    if (k?.kind === "alert") k = this.store.all.alert.get(k.id)?.entity ?? k;
    const p = k && this.placeOf(k);
    if (p && document.activeElement !== this.map.canvas) this.map.show(p); // before the step of the history, which has the map's place
    this.model.set({ selected: k, said: "", why: false, following: this.model.following && k !== null && this.store.droneOf(k) !== undefined });
    this.map.redraw();
  }

  placeOf(k: Key): Place | undefined {
    const { all, marks } = this.store;
    switch (k.kind) {
      case "drone": return marks.get(k.id);
      case "order": return all.order.get(k.id)?.deliveryLocation;
      case "mission": return marks.get(all.mission.get(k.id)?.droneId ?? "");
      case "depot": return all.depot.get(k.id)?.position;
      case "warehouse": return all.warehouse.get(k.id)?.position;
    }
  }

  // zoomTo selects an entity and shows what is around it.
  zoomTo(k: Key): void {
    this.select(k);
    const at = this.placeOf(k);
    if (at) this.map.show(at, near);
  }

  follow(on: boolean): void {
    this.model.set({ following: on });
    this.map.redraw();
  }

  theme(theme: Theme): void {
    this.model.set({ theme });
    this.restyle();
  }

  // narrow shows only what some of the counts count and what contains a text.
  narrow(only: string[], find = this.model.find): void {
    this.model.set({ only, find });
    this.map.redraw();
  }

  // may says that who is signed in may do something now.
  may(verb: string): boolean { return !this.model.past && (this.model.who?.verbs.includes(verb) ?? false); }

  // pin asks whether an order shall be pinned to a drone.
  pin(order: string, drone: string): void {
    const verb = verbsFor(this.store, { kind: "order", id: order }, this.model.who?.verbs ?? []).find((v) => v.name === "Pin");
    if (!verb?.choice || !this.may("orders pin")) { this.say("Only open orders can be pinned, by operators."); return; }
    this.select({ kind: "order", id: order });
    this.model.set({ verb: { ...verb, choice: { ...verb.choice, value: drone } } });
  }

  // mark marks entities for verbs of many, or no longer.
  mark(list: Key[], on: boolean): void {
    const others = this.model.marked.filter((m) => !list.some((k) => same(k, m)));
    this.model.set({ marked: on ? [...others, ...list] : others });
  }

  say(said: string): void { this.model.set({ said }); }

  private restyle(): void {
    document.documentElement.dataset.theme = this.model.theme;
    this.dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    this.map.restyle();
    this.refresh();
  }

  // restore shows what the address says.
  private async restore(): Promise<void> {
    const m = this.model, then = m.restore(location.hash);
    if (!then) this.leave();
    m.set(then ? {} : { past: null, span: null });
    const p = m.selected && this.placeOf(m.selected);
    if (m.centre) this.map.place(m.centre); else if (p) this.map.show(p); else this.map.fit();
    if (then && m.past && m.span?.from === then.within?.[0] && m.span?.to === then.within?.[1]) this.seek(then.at);
    else if (then) {
      const now = await this.time();
      await this.recall(then.at, then.within ? spanOf(...then.within, now) : around(then.at, now));
    }
    m.restoring = false;
  }

  // time is the server's time, once it is known.
  private async time(): Promise<number> {
    while (isNaN(this.live.now())) await new Promise((done) => setTimeout(done, 50));
    return this.live.now();
  }

  // recall shows the fleet as Firestore recorded it, at a moment of an interval.
  async recall(at: number, span: Span): Promise<void> {
    const before = this.replay;
    this.say("Reading the past…");
    let told = 0;
    const r = new Replay(span, at, (whole) => {
      if (this.replay !== r) return;
      const m = this.model, now = performance.now();
      if (m.past !== r.store) m.set({ past: r.store, span, moment: r.at, said: "", view: knowsPast(m.view) ? m.view : "Orders" });
      // Tables are drawn four times a second while it plays; the address follows.
      if (whole || now - told > 250) { told = now; this.moved(); }
      this.map.redraw();
    });
    before?.end();
    this.replay = r;
    const loaded = r.load();
    loaded.catch((err: Error) => {
      if (this.replay !== r) return;
      this.replay = null;
      this.model.set({ past: null, span: null, said: err.message });
      this.map.redraw();
    });
    await Promise.race([loaded.catch(() => undefined), new Promise<void>((done) => { r.ready = done; })]);
  }

  // seek shows another time of the interval.
  seek(at: number): void {
    if (!this.replay) return;
    this.replay.play(false);
    this.replay.seek(at);
    this.moved();
    this.map.redraw();
  }

  // moved has the address follow the time that is shown.
  private moved(): void { this.model.set({ moment: Math.round(this.replay!.at / 1000) * 1000 }); }

  // present leaves the past.
  present(): void {
    this.leave();
    this.model.set({ past: null, span: null, said: "" });
    this.map.redraw();
  }

  private leave(): void {
    this.replay?.end();
    this.replay = null;
  }

  private sample(): void {
    const now = this.live.now();
    if (!this.live.all.drone.size || now - this.sampled < sampling) return;
    this.sampled = now;
    for (const c of counts) {
      const list = this.history.get(c.id) ?? [];
      list.push(numberOf(c, this.live));
      if (list.length > samples) list.shift();
      this.history.set(c.id, list);
    }
  }

  // identify asks who is signed in: at the start, when the connection is refused, and often
  // enough for the session to be renewed.
  private async identify(): Promise<void> {
    const { status, who } = await session();
    this.model.set({ mustSignIn: status === 401, ...(status ? { who } : {}) });
  }
}

// knowsPast says which views show a past moment.
export function knowsPast(view: ViewName): boolean { return !["Numbers", "Handover", "Incidents"].includes(view); }

export function same(a: Key, b: Key | null): boolean { return a.kind === b?.kind && a.id === b.id; }
