import { name } from "./names";
import { ask, Refusal } from "./session";
import { time, Store } from "./store";
import type { Alert, Cycle, Key, Position, Upsert } from "./types";
import { plain } from "./words";

const minute = 60e3, hour = 3600e3; // ms
const atOnce = 10; // moments in an answer
const most = 500; // events

// Span is an interval of the past, and the time from one of its moments to the next, in ms.
export interface Span { from: number; to: number; step: number }

// last is the interval that ends now.
export function last(length: number, now: number): Span { return spanOf(now - length, now, now); }

// around is the interval with a time in its middle, which is one of its moments.
export function around(at: number, now: number): Span { return spanOf(at - 7 * minute, Math.min(now, at + 8 * minute), now); }

// spanOf is an interval with as many moments as are worth their cost: 15 s apart, or a minute where
// it is long or Firestore knows whole minutes alone.
export function spanOf(from: number, to: number, now: number): Span {
  const step = to - from > 20 * minute || from < now - hour + minute ? minute : minute / 4;
  return { from: Math.round(from), to: Math.floor(to), step }; // as addresses have them
}

// Tick is an event that stands out.
// The text of one that needs no kind is a sentence.
export interface Tick { at: number; kind: string; entity: Key; text: string; sentence: boolean }

interface Moment { at: number; whole: boolean; upserts: Upsert[]; deletes: Key[]; positions: Position[] }

interface Answer {
  moments: { readTime: string; whole: boolean; upserts: Upsert[]; deletes: Key[]; positions: Position[] }[];
  events: { at: string; kind: string; entity: Key; text: string; reason?: string; by?: string }[];
}

interface Spot { lat: number; lon: number; at: number }

// Replay is the fleet in an interval of the past. It reads the interval piece by piece, first the
// one that is looked at, and shows one time of it in its store.
export class Replay {
  readonly store: Store;
  ticks: Tick[] = [];
  read = 0; // pieces of the interval that have arrived
  readonly pieces: number;
  missing = ""; // why a part could not be read that may still exist
  playing = false;
  speed = 10;
  private moments: Moment[] = []; // by time
  private shown = -1; // index of the moment that the store has
  private from = new Map<string, Spot & { length: number }>(); // where drones were then, and the length of their trails
  private to = new Map<string, Spot>(); // where they were at the next
  private asked = new Set<number>();
  private played = NaN; // when the last picture was drawn, by the page's clock
  private ended = false;
  private failed = ""; // why a part could not be read
  ready = (): void => {}; // called once there is something to show

  constructor(readonly span: Span, at: number, private changed: (drawn: boolean) => void) {
    this.store = new Store(this.within(at));
    this.pieces = Math.floor((span.to - span.from) / span.step / atOnce) + 1;
  }

  get at(): number { return this.store.now(); }

  // begins is the first moment that is known.
  get begins(): number { return this.moments[0]?.at ?? NaN; }

  get loading(): boolean { return this.read < this.pieces && !this.ended; }

  // load reads the interval. It throws if there is nothing to show.
  async load(): Promise<void> {
    for (let piece = this.wanted(); piece >= 0 && !this.ended; piece = this.wanted()) {
      this.asked.add(piece);
      const from = this.span.from + piece * atOnce * this.span.step, to = Math.min(this.span.to, from + (atOnce - 1) * this.span.step);
      try {
        const query = new URLSearchParams({ from: new Date(from).toISOString(), to: new Date(to).toISOString(), every: String(this.span.step / 1000) });
        this.add(await ask<Answer>("replay?" + query.toString()));
      } catch (err) {
        this.failed = (err as Error).message;
        if (!(err instanceof Refusal && err.status === 410)) this.missing = this.failed;
      }
      this.read++;
      if (this.moments.length && !this.ended) { this.seek(this.at); this.changed(true); this.ready(); }
    }
    if (!this.moments.length) throw new Error(this.failed);
  }

  end(): void { this.ended = true; this.playing = false; }

  // wanted is the next piece to read: that of the time which is shown, then the later ones, then the
  // earlier ones.
  private wanted(): number {
    const here = Math.max(0, Math.min(this.pieces - 1, Math.floor((this.at - this.span.from) / this.span.step / atOnce)));
    for (let i = here; i < this.pieces; i++) if (!this.asked.has(i)) return i;
    for (let i = here - 1; i >= 0; i--) if (!this.asked.has(i)) return i;
    return -1;
  }

  private add(a: Answer): void {
    const known = new Set(this.moments.map((m) => m.at));
    const more = a.moments.map((m) => ({ ...m, at: Date.parse(m.readTime) })).filter((m) => m.whole || !known.has(m.at));
    this.moments = [...this.moments.filter((m) => !more.some((n) => n.at === m.at)), ...more].sort((x, y) => x.at - y.at);
    this.shown = -1;
    const ticks = [...this.ticks, ...a.events.map((e) => ({ at: time(e.at), kind: e.kind, entity: e.entity, sentence: e.kind === "OPERATOR", text: [e.kind === "OPERATOR" ? e.text : "", readable(e.reason), e.by && `by ${e.by}`].filter(Boolean).join("; ") }))];
    for (const m of more) for (const u of m.upserts) {
      const alert = u.entity as Alert, cycle = u.entity as Cycle;
      if (u.kind === "alert") ticks.push({ at: time(alert.since), kind: alert.kind, entity: alert.entity, sentence: true, text: alert.text });
      if (u.kind === "cycle" && Object.keys(cycle.refused).length) {
        ticks.push({ at: time(cycle.endedAt), kind: "CYCLE_REFUSED", entity: u, sentence: false, text: Object.entries(cycle.refused).map(([reason, n]) => `${n} ${plain(reason)}`).join(", ") });
      }
    }
    const seen = new Set<string>(); // an alert comes again with each piece
    this.ticks = ticks.filter((t) => t.at >= this.span.from && t.at <= this.span.to).sort((x, y) => x.at - y.at)
      .filter((t) => { const key = `${t.kind} ${t.entity.id} ${t.kind.startsWith("CRITICAL") || t.kind === "CYCLE_REFUSED" ? "" : t.at}`; return !seen.has(key) && !!seen.add(key); }).slice(-most);
  }

  private within(at: number): number { return Math.max(this.span.from, Math.min(this.span.to, at)); }

  // seek shows a time: what is known of the moment before it, with drones on their way to the next.
  seek(at: number): void {
    at = this.within(at);
    let i = this.moments.findLastIndex((m) => m.at <= at);
    if (i < 0) i = 0;
    if (!this.moments.length) { this.store.turn(at); return; }
    this.show(i);
    const here = this.moments[i], next = this.moments[i + 1];
    this.store.turn(Math.max(at, here.at));
    // Where a piece is missing, drones stay.
    const share = next && next.at - here.at <= 2 * this.span.step ? Math.max(0, at - here.at) / (next.at - here.at) : 0;
    for (const [id, was] of this.from) {
      const is = this.to.get(id), m = this.store.marks.get(id);
      if (!m) continue;
      const north = is ? is.lat - was.lat : 0, east = is ? is.lon - was.lon : 0, moved = share > 0 && Math.abs(north) + Math.abs(east) > 1e-6;
      m.lat = was.lat + share * north;
      m.lon = was.lon + share * east;
      m.at = was.at + (is ? share * Math.max(0, is.at - was.at) : 0);
      m.trail.length = Math.min(m.trail.length, was.length);
      if (!moved) continue;
      m.heading = Math.atan2(east * Math.cos((m.lat * Math.PI) / 180), north);
      m.trail.push(m.lat, m.lon);
    }
  }

  // show brings the store to a moment.
  private show(i: number): void {
    if (this.shown === i) return;
    let first = this.shown + 1;
    if (this.shown < 0 || i < this.shown) {
      this.store.clear();
      first = i;
      while (first > 0 && !this.moments[first].whole) first--;
    } else {
      for (const [id, was] of this.from) this.place(id, was); // without what was assumed of the way to the next moment
    }
    for (let k = first; k <= i; k++) this.apply(this.moments[k]);
    this.shown = i;
    this.from = new Map([...this.store.marks].map(([id, m]) => [id, { lat: m.lat, lon: m.lon, at: m.at, length: m.trail.length }]));
    this.to = new Map();
    const next = this.moments[i + 1];
    for (const u of next?.upserts ?? []) {
      const d = u.entity as { position?: { lat: number; lon: number }; lastUpdate?: string };
      if (u.kind === "drone" && d.position) this.to.set(u.id, { ...d.position, at: time(d.lastUpdate) });
    }
    for (const [id, lat, lon, , , at] of next?.positions ?? []) this.to.set(id, { lat, lon, at });
  }

  private place(id: string, was: Spot & { length: number }): void {
    const m = this.store.marks.get(id);
    if (!m) return;
    m.lat = was.lat;
    m.lon = was.lon;
    m.at = was.at;
    m.trail.length = Math.min(m.trail.length, was.length);
  }

  private apply(m: Moment): void {
    if (m.whole) {
      const there = new Set(m.upserts.map((u) => `${u.kind} ${u.id}`));
      for (const kind of ["drone", "order", "mission", "cycle", "alert"] as const) for (const id of [...this.store.all[kind].keys()]) if (!there.has(`${kind} ${id}`)) this.store.delete({ kind, id });
    }
    m.deletes.forEach((k) => this.store.delete(k));
    m.upserts.forEach((u) => this.store.upsert(u));
    m.positions.forEach((p) => this.store.position(p));
  }

  // move goes to the next moment, or back.
  move(by: 1 | -1): void {
    const to = by > 0 ? this.moments.find((m) => m.at > this.at) : this.moments.findLast((m) => m.at < this.at);
    if (to) this.seek(to.at);
  }

  // event is the next one, or the one before.
  event(by: 1 | -1): Tick | undefined {
    return by > 0 ? this.ticks.find((t) => t.at > this.at) : this.ticks.findLast((t) => t.at < this.at);
  }

  // latest is the event that happened last.
  get latest(): Tick | undefined { return this.ticks.findLast((t) => t.at <= this.at); }

  play(on: boolean): void {
    if (on && this.at >= this.span.to) this.seek(this.span.from);
    if (on === this.playing) return;
    this.playing = on;
    this.played = performance.now();
    if (on) requestAnimationFrame(() => this.tick());
    this.changed(true);
  }

  private tick(): void {
    if (!this.playing) return;
    const now = performance.now();
    this.seek(this.at + this.speed * Math.min(1000, now - this.played));
    this.played = now;
    if (this.at >= this.span.to) this.playing = false;
    else requestAnimationFrame(() => this.tick());
    this.changed(!this.playing);
  }
}

// eventText is what an event is called.
export function eventText(s: Store, t: Tick): string {
  const of = name(s, t.entity);
  return t.sentence ? t.text.replace(t.entity.id, () => of) : `${plain(t.kind)}: ${of}${t.text && ` (${t.text})`}`;
}

// readable is a reason in words: a person's as it is, a name of the API without its capitals.
function readable(reason = ""): string { return /^[A-Z_]+$/.test(reason) ? plain(reason) : reason; }
