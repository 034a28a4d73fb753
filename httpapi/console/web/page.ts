import { worst } from "./alerts";
import { counts, numberOf } from "./counts";
import { Filter } from "./filter";
import type { FleetMap } from "./map";
import { Model, type Theme, type ViewName } from "./model";
import { said } from "./names";
import { Replay } from "./replay";
import { ask, session } from "./session";
import { Siren } from "./siren";
import { Store } from "./store";
import { Stream } from "./stream";
import type { Key, Place, Upsert } from "./types";
import { verbsFor } from "./verbs";
import { server } from "./words";

const sampling = 15e3, samples = 60; // ms between samples of the counts, and how many are kept
const near = 12000; // pixels a degree: close enough to tell two drones apart

// Page has what its components show, and what people do to it beside commands.
export class Page {
  readonly live = new Store();
  readonly model: Model;
  readonly stream: Stream;
  readonly replay = new Replay();
  readonly history = new Map<string, number[]>(); // of each count, a sample every 15 s
  filter: Filter | null = null; // null shows all
  map!: FleetMap; // set by its component
  dark = false; // as the style sheet has it
  private sampled = NaN; // when, by the server's clock
  private siren = new Siren();

  // draw brings the page up to date, all but the map.
  constructor(private draw: () => void) {
    this.model = new Model(() => this.refresh());
    this.stream = new Stream(this.live, () => { if (!this.model.frame) this.map.redraw(); });
    server.now = () => this.live.now();
  }

  // store is the fleet that is shown: as it is, or as it was.
  get store(): Store { return this.model.past ?? this.live; }

  // start begins to show the fleet.
  start(): void {
    this.restyle();
    void this.restore();
    addEventListener("popstate", () => void this.restore());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    setInterval(() => {
      this.refresh();
      if (!this.model.frame) this.map.redraw(); // drones pale as their reports age
    }, 1000);
    void this.identify();
    setInterval(() => void this.identify(), 20 * 60e3);
    setInterval(() => { if (this.stream.state === "refused") void this.identify(); this.remember(); }, 5000);
  }

  refresh(): void {
    const m = this.model, find = m.find.trim().toLowerCase();
    this.filter = find || m.only.length ? new Filter(this.store, find, m.only) : null;
    this.sample();
    const root = document.documentElement.dataset;
    root.state = this.stream.state === "live" && this.stream.delay > 0 ? "lost" : this.stream.state;
    if (m.frame) root.past = "places"; else if (m.past) root.past = "all"; else delete root.past;
    const t = worst(this.live), n = [...this.live.all.alert.values()].filter((a) => a.urgent && !a.acknowledged).length;
    document.title = t ? `(${n}) ${said(this.live, t.alert)}` : "DroneFleet console";
    this.draw();
    this.siren.hear(this.live, m.sound);
  }

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
  may(verb: string): boolean { return !this.model.past && !this.model.frame && (this.model.who?.verbs.includes(verb) ?? false); }

  // pin asks whether an order shall be pinned to a drone.
  pin(order: string, drone: string): void {
    const verb = verbsFor(this.store, { kind: "order", id: order }, this.model.who?.verbs ?? []).find((v) => v.name === "Pin");
    if (!verb?.choice || !this.may("orders pin")) { this.say("Only open orders can be pinned, by operators."); return; }
    this.select({ kind: "order", id: order });
    this.model.set({ verb: { ...verb, choice: { ...verb.choice, value: drone } } });
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
    const m = this.model, at = m.restore(location.hash);
    m.set(at === null ? { past: null } : {});
    const p = m.selected && this.placeOf(m.selected);
    if (m.centre) this.map.place(m.centre); else if (p) this.map.show(p); else this.map.fit();
    if (at !== null && at !== m.past?.now()) await this.recall(at);
    m.restoring = false;
  }

  // rewind shows where the drones were at a frame of the replay; the newest is the present.
  rewind(i: number): void {
    const frames = this.replay.frames;
    this.model.set({ past: null, frame: i < frames.length - 1 ? frames[i] : null });
    this.map.redraw();
  }

  // recall shows the fleet as Firestore recorded it at a moment.
  async recall(at: number): Promise<void> {
    this.say("Reading the past…");
    try {
      const answer = await ask<{ readTime: string; entities: Upsert[] }>("snapshot?at=" + encodeURIComponent(new Date(at).toISOString()));
      const past = new Store(Date.parse(answer.readTime));
      answer.entities.forEach((u) => past.upsert(u));
      const view = knowsPast(this.model.view) ? this.model.view : "Orders";
      this.model.set({ past, frame: null, said: "", view });
      this.map.redraw();
    } catch (err) {
      this.say((err as Error).message);
    }
  }

  // remember takes a frame for the replay.
  remember(): void {
    this.replay.remember(this.live);
    this.refresh();
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
export function knowsPast(view: ViewName): boolean { return view !== "Alerts" && view !== "Numbers"; }
