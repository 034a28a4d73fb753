import { Filter } from "./filter";
import type { FleetMap } from "./map";
import { Model, type Theme, type ViewName } from "./model";
import { Replay } from "./replay";
import { ask, session } from "./session";
import { Siren } from "./siren";
import { Store } from "./store";
import { Stream } from "./stream";
import type { Key, Place, Upsert } from "./types";
import { server } from "./words";

const samples = 360; // of the share of busy drones

// Page has what its components show, and what people do to it beside commands.
export class Page {
  readonly live = new Store();
  readonly model: Model;
  readonly stream: Stream;
  readonly replay = new Replay();
  readonly busy: number[] = []; // shares of the drones with a mission
  filter: Filter | null = null; // null shows all
  map!: FleetMap; // set by its component
  dark = false; // as the style sheet has it
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
    setInterval(() => { if (this.stream.state === "refused") void this.identify(); this.remember(); this.sample(); }, 5000);
  }

  refresh(): void {
    const m = this.model, find = m.find.trim().toLowerCase();
    this.filter = find ? new Filter(this.store, find) : null;
    const root = document.documentElement.dataset;
    root.state = this.stream.state === "live" && this.stream.delay > 0 ? "lost" : this.stream.state;
    if (m.frame) root.past = "places"; else if (m.past) root.past = "all"; else delete root.past;
    this.draw();
    this.siren.hear(this.live, m.sound);
  }

  show(view: ViewName): void { this.model.set({ view }); }

  select(k: Key | null): void {
    if (k?.kind === "alert") k = this.store.all.alert.get(k.id)?.entity ?? k;
    this.model.set({ selected: k, following: this.model.following && k?.kind === "drone" });
    const p = k && this.placeOf(k);
    if (p && document.activeElement !== this.map.canvas) this.map.show(p);
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

  follow(on: boolean): void {
    this.model.set({ following: on });
    this.map.redraw();
  }

  theme(theme: Theme): void {
    this.model.set({ theme });
    this.restyle();
  }

  find(text: string): void {
    this.model.set({ find: text });
    this.map.redraw();
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
    if (p) this.map.show(p);
    this.map.redraw();
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
    const drones = [...this.live.all.drone.values()];
    if (!drones.length) return;
    this.busy.push(drones.filter((d) => d.currentMissionId).length / drones.length);
    if (this.busy.length > samples) this.busy.shift();
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
