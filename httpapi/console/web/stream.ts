import type { Store } from "./store";
import type { Key, Position, Upsert } from "./types";

export type State = "connecting" | "live" | "lost" | "refused";

// silence is after how many ms without a word the connection counts as lost; a server
// says something every second.
const silence = 4000;
const retry = 1000;
const many = 1000; // drones from which the page is told sooner of those that its map shows
const rarely = 2000; // ms between two changes of what the map shows that the server is told of

// Box is a part of the world: south, west, north and east.
export type Box = [number, number, number, number];

// Stream keeps a store current, and reconnects by itself.
export class Stream {
  state: State = "connecting";
  delay = 0; // for how many ms the server has been without an answer of its own sources
  heard = performance.now();
  private source?: EventSource;
  private opened = 0;
  whole = false; // the store has a whole snapshot
  near: Box | null = null; // where the server tells of drones sooner than elsewhere; null for all the world
  areas: string[] | null = null; // the depots whose areas the server tells of; null for the whole fleet
  private fresh = true; // the next snapshot part is the first
  private last = ""; // the id of the last event

  constructor(private store: Store, private changed: () => void) {
    // To begin with the whole of a large fleet is expensive, and the server would leave out the rest at once.
    if (localStorage.getItem("areas")) this.near = mapped(location.hash);
    this.open();
    setInterval(() => {
      // Also while it opens: a server that hangs accepts connections and says nothing.
      if (performance.now() - Math.max(this.heard, this.opened) > silence) this.reopen(this.state === "live" ? "lost" : this.state);
    }, 250);
  }

  private open(): void {
    const source = new EventSource("/api/v1/stream" + (this.near ? `?near=${this.near.join()}` + (this.last && `&after=${this.last}`) : ""));
    this.source = source;
    this.opened = performance.now();
    const on = <T extends { serverTime: string }>(name: string, act: (data: T) => void) => {
      source.addEventListener(name, (e) => {
        this.heard = performance.now();
        this.last = (e as MessageEvent).lastEventId;
        const data = JSON.parse((e as MessageEvent<string>).data) as T;
        if (data.serverTime) this.store.tell(data.serverTime);
        act(data);
        this.changed();
      });
    };
    on<{ serverTime: string; last: boolean; entities: Upsert[]; areas?: string[] }>("snapshot", (s) => {
      if (this.fresh) this.store.clear();
      this.fresh = this.whole = s.last;
      s.entities.forEach((u) => this.store.upsert(u));
      if (!s.last) return;
      this.state = "live";
      this.areas = s.areas ?? null;
      if (this.areas) localStorage.setItem("areas", "1");
      else if (this.store.marks.size < many) localStorage.removeItem("areas");
    });
    on<{ serverTime: string; upserts?: Upsert[]; deletes?: Key[]; positions?: Position[]; feedDelayMs: number }>("changes", (c) => {
      this.delay = c.feedDelayMs;
      this.state = "live"; // also after a connection that was resumed
      c.upserts?.forEach((u) => this.store.upsert(u));
      c.deletes?.forEach((k) => this.store.delete(k));
      c.positions?.forEach((p) => this.store.position(p));
    });
    on<{ serverTime: string; feedDelayMs: number }>("heartbeat", (h) => { this.delay = h.feedDelayMs; });
    source.onerror = () => {
      this.fresh = true;
      if (source.readyState === EventSource.CLOSED && this.near) this.near = null; // perhaps an older server
      if (source.readyState === EventSource.CLOSED) this.reopen(this.state === "live" ? "lost" : "refused");
      else if (this.state === "live") this.lose("lost");
    };
  }

  // look tells the server what the map of a large fleet shows, if it has left what the server knows or is much smaller.
  look(at: Box): void {
    if (this.state !== "live" || (this.store.marks.size < many && !this.areas) || performance.now() - this.opened < rarely) return;
    const [s, w, n, e] = at, tall = n - s, wide = e - w, k = this.near;
    if (!(tall > 0) || k && k[0] <= s && k[1] <= w && k[2] >= n && k[3] >= e && k[2] - k[0] < 6 * tall) return;
    this.near = [within(s - tall / 2, 90), within(w - wide / 2, 180), within(n + tall / 2, 90), within(e + wide / 2, 180)];
    this.source?.close();
    this.fresh = true;
    this.open();
  }

  private lose(state: State): void {
    this.state = state;
    this.changed();
  }

  // reopen starts anew where the browser would not.
  private reopen(state: State): void {
    this.source?.close();
    this.fresh = true;
    this.lose(state);
    this.opened = performance.now() + retry; // not again meanwhile
    setTimeout(() => this.open(), retry);
  }
}

// mapped is twice what the map of a page's address shows; null if it names none.
function mapped(hash: string): Box | null {
  const [lat, lon, scale] = (new URLSearchParams(hash.slice(1)).get("map") ?? "").split(",").map(Number);
  if (!(scale > 0)) return null;
  const tall = (innerHeight / scale) * Math.cos((lat * Math.PI) / 180), wide = innerWidth / scale;
  return [within(lat - tall, 90), within(lon - wide, 180), within(lat + tall, 90), within(lon + wide, 180)];
}

function within(v: number, most: number): number { return Number(Math.max(-most, Math.min(most, v)).toFixed(4)); }
