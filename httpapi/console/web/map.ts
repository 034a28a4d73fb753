import { BaseMap } from "./basemap";
import { set } from "./dom";
import { drop } from "./drag";
import type { Centre } from "./model";
import { name } from "./names";
import type { Page } from "./page";
import { reach, standsAt } from "./parked";
import { Layer, type Shape } from "./sprites";
import { open, time, type Mark, type Store } from "./store";
import type { Box } from "./stream";
import type { Key, Order, Place } from "./types";
import { View } from "./view";
import { clock } from "./words";

// Shape and colour by status. The shape alone tells statuses apart. Colours are variables
// of the style sheet.
export const looks: Record<string, [Shape, string]> = {
  IDLE: ["circle", "idle"], RESERVED: ["dot", "moving"], MOVING: ["arrow", "moving"], DELIVERING: ["diamond", "delivering"],
  CHARGING: ["square", "charging"], MAINTENANCE: ["frame", "unknown"], PROBLEM: ["triangle", "problem"],
  EMERGENCY: ["cross", "emergency"], UNKNOWN: ["ring", "unknown"],
};
const unlisted: [Shape, string] = ["ring", "unknown"];

const stale = 10e3, silent = 60e3; // ms since a report after which a drone pales
const clusterAt = 400; // drones in sight from which crowds are drawn as numbers...
const clusterZoom = 3000; // ...at fewer pixels than this a degree
const clusterAlways = 10000; // or from which they are in any case: more take too long to draw
const above = 18; // pixels from a place up to the number of its drones
const rest = 500; // ms after which a move has ended
const cell = 56; // pixels of a crowd
const spread = 26; // pixels around a place up to which drones that stand there lie on each other
const unsure = 100; // metres beyond which the bound of the selected drone's position is drawn
const card = 310; // pixels at the right that the selection's facts cover

const troubled = new Set(["PROBLEM", "EMERGENCY"]);

// Pile is a place with drones that stand there, drawn as a number above it.
interface Pile { kind: "depot" | "warehouse"; id: string; position: Place; x: number; y: number; count: number }

// Parts are the elements that the map draws on: two canvases, the drones' above, and a scale.
export interface Parts { canvas: HTMLCanvasElement; drones: HTMLCanvasElement; scale: HTMLElement; length: HTMLElement }

// FleetMap draws the fleet on a canvas.
export class FleetMap {
  readonly canvas: HTMLCanvasElement;
  drawn = 0; // drones in the last picture, crowds included
  bound = 0; // pixels around the selected drone in which it is, if they are drawn
  readonly took: number[] = []; // ms of the latest pictures
  private g: CanvasRenderingContext2D;
  private drones: Layer;
  readonly below = new BaseMap(() => this.redraw());
  private xs = new Float32Array(0); // of the drones in sight, so that a picture makes no garbage
  private ys = new Float32Array(0);
  private sight: Mark[] = [];
  private piles: Pile[] = []; // in the last picture
  private lat = 48.8566;
  private lon = 2.3522;
  private scale = 3000; // pixels a degree of longitude
  private width = 0;
  private height = 0;
  private fitted = false; // once, to places
  private moved = false; // by somebody, since the last fit
  private due = false;
  private noting = 0;
  private colours: Record<string, string> = {};

  constructor(private parts: Parts, private page: Page) {
    this.canvas = parts.canvas;
    this.g = this.canvas.getContext("2d")!;
    this.drones = new Layer(parts.drones);
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement!);
    this.resize();
    this.restyle();
    this.listen();
  }

  private get store(): Store { return this.page.store; }

  private get selected(): Key | null { return this.page.model.selected; }

  restyle(): void {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ground", "text", "faint", "idle", "moving", "delivering", "charging", "problem", "emergency",
      "unknown", "accent", "CRITICAL", "HIGH", "STANDARD"]) this.colours[name] = style.getPropertyValue("--" + name).trim();
    this.drones.restyle();
    this.below.restyle();
    this.redraw();
  }

  redraw(): void {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      const began = performance.now();
      this.draw();
      this.took.push(performance.now() - began);
      if (this.took.length > 1000) this.took.shift();
    });
  }

  zoom(by: number, x = this.width / 2, y = this.height / 2): void {
    const [lat, lon] = this.at(x, y);
    this.scale = limited(this.scale * by);
    const [nx, ny] = this.xy(lat, lon);
    this.pan(nx - x, ny - y);
  }

  // fit shows everything that has a place, until somebody moves the map.
  fit(): void {
    this.moved = this.fitted = false;
    this.note();
    this.redraw();
  }

  // frame fits the map where a place lies outside of it.
  private frame(): void {
    let s = 90, n = -90, w = 180, e = -180;
    const include = (p: Place) => { s = Math.min(s, p.lat); n = Math.max(n, p.lat); w = Math.min(w, p.lon); e = Math.max(e, p.lon); };
    this.store.marks.forEach(include);
    for (const d of this.store.all.depot.values()) include(d.position);
    for (const h of this.store.all.warehouse.values()) include(h.position);
    for (const o of this.store.all.order.values()) if (open(o)) include(o.deliveryLocation);
    if (s > n || !this.width) return;
    const [left, top] = this.xy(n, w), [right, bottom] = this.xy(s, e);
    if (this.fitted && left >= 0 && top >= 0 && right <= this.width && bottom <= this.height) return;
    const covered = !this.selected || this.width < 700 ? 0 : card;
    this.lat = (s + n) / 2;
    this.scale = Math.min(40000, 0.85 * Math.min((this.width - covered) / Math.max(e - w, 0.01), this.height * this.squeeze() / Math.max(n - s, 0.01)));
    this.lon = (w + e) / 2 + covered / 2 / this.scale;
    this.fitted = true;
  }

  // show brings a place to the middle, at a scale of closer at least.
  show(p: Place, closer = 0): void {
    this.moved = true;
    this.scale = Math.max(this.scale, closer);
    this.lat = p.lat;
    this.lon = p.lon;
    this.page.model.centre = this.centre();
    this.note();
    this.redraw();
  }

  // place shows what an address says.
  place(c: Centre): void {
    this.scale = limited(c.scale);
    this.show(c);
  }

  // note tells the model where the map is, once it rests.
  private note(): void {
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.page.model.set({ centre: this.moved ? this.centre() : null }), rest);
  }

  private centre(): Centre { return { lat: this.lat, lon: this.lon, scale: this.scale }; }

  private squeeze(): number { return Math.cos((this.lat * Math.PI) / 180); }

  private xy(lat: number, lon: number): [number, number] {
    return [this.width / 2 + (lon - this.lon) * this.scale, this.height / 2 - ((lat - this.lat) * this.scale) / this.squeeze()];
  }

  private at(x: number, y: number): [number, number] {
    return [this.lat - ((y - this.height / 2) * this.squeeze()) / this.scale, this.lon + (x - this.width / 2) / this.scale];
  }

  // sees is the part of the world in sight: south, west, north and east.
  sees(): Box {
    const [n, w] = this.at(0, 0), [s, e] = this.at(this.width, this.height);
    return [s, w, n, e];
  }

  private pan(dx: number, dy: number): void {
    this.moved = true;
    this.lat = Math.max(-85, Math.min(85, this.lat - (dy * this.squeeze()) / this.scale));
    this.lon += dx / this.scale;
    this.note();
    this.redraw();
  }

  private resize(): void {
    const box = this.canvas.parentElement!.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.drones.resize(box.width, box.height, ratio);
    this.redraw();
  }

  private listen(): void {
    const c = this.canvas;
    let from: { x: number; y: number; moved: boolean } | null = null;
    c.addEventListener("pointerdown", (e) => { from = { x: e.offsetX, y: e.offsetY, moved: false }; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointermove", (e) => {
      if (!from) { this.tell(this.nearest(e.offsetX, e.offsetY)); return; }
      const dx = e.offsetX - from.x, dy = e.offsetY - from.y;
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      from = { x: e.offsetX, y: e.offsetY, moved: true };
      this.pan(-dx, -dy);
    });
    c.addEventListener("pointerup", (e) => {
      if (from && !from.moved) this.page.select(this.nearest(e.offsetX, e.offsetY));
      from = null;
    });
    c.addEventListener("pointercancel", () => { from = null; });
    const to = drop(this.page, (e) => { const k = this.nearest(e.offsetX, e.offsetY); return k?.kind === "drone" ? k.id : undefined; });
    c.addEventListener("dragover", to.onDragOver);
    c.addEventListener("dragleave", to.onDragLeave);
    c.addEventListener("drop", to.onDrop);
    c.addEventListener("wheel", (e) => { e.preventDefault(); this.zoom(Math.exp(-e.deltaY / 400), e.offsetX, e.offsetY); }, { passive: false });
    const keys: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-60, 0), ArrowRight: () => this.pan(60, 0), ArrowUp: () => this.pan(0, -60), ArrowDown: () => this.pan(0, 60),
      Enter: () => this.nextPile(), "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), "0": () => this.fit(), Escape: () => this.page.select(null),
    };
    c.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
      e.preventDefault();
      keys[e.key]();
    });
  }

  // nextPile selects a place where drones stand: the one nearest to the middle, then the next.
  private nextPile(): void {
    const far = (pile: Pile) => Math.hypot(pile.x - this.width / 2, pile.y - this.height / 2);
    const all = [...this.piles].sort((a, b) => far(a) - far(b)), at = all.findIndex((pile) => pile.id === this.selected?.id), next = all[(at + 1) % all.length];
    if (next) this.page.select({ kind: next.kind, id: next.id });
  }

  // tell names what the pointer is at.
  private tell(k: Key | null): void {
    const text = k ? name(this.store, k) : "";
    if (this.canvas.title !== text) this.canvas.title = text;
  }

  private nearest(x: number, y: number): Key | null {
    let best: Key | null = null, least = 18;
    const look = (kind: Key["kind"], id: string, p: Place) => {
      const [px, py] = this.xy(p.lat, p.lon), far = Math.hypot(px - x, py - y);
      if (far < least && (this.page.filter?.matches(kind, id) ?? true)) { least = far; best = { kind, id }; }
    };
    for (const pile of this.piles) if (Math.hypot(pile.x - x, pile.y - above - y) < 14) return { kind: pile.kind, id: pile.id };
    for (const m of this.store.marks.values()) if (troubled.has(m.status) || !this.piles.some((pile) => standsAt(m, pile.position))) look("drone", m.id, m);
    for (const o of this.store.all.order.values()) if (open(o)) look("order", o.id, o.deliveryLocation);
    if (best) return best;
    for (const kind of ["depot", "warehouse"] as const) for (const h of this.store.all[kind].values()) look(kind, h.id, h.position);
    return best;
  }

  private draw(): void {
    if (!this.moved) this.frame();
    const { g, colours, store } = this, ratio = window.devicePixelRatio || 1;
    if (this.page.model.following && this.selected) {
      const m = store.marks.get(store.droneOf(this.selected) ?? "");
      if (m) { this.lat = m.lat; this.lon = m.lon; this.moved = true; }
    }
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = colours.ground;
    g.fillRect(0, 0, this.width, this.height);
    this.below.draw(g, new View(this.lat, this.lon, this.scale, this.width, this.height, ratio), store);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    this.drawHospitals();
    this.drawRoutes();
    this.drawOrders();
    for (const d of store.all.depot.values()) this.house(d.position, d.name ?? d.id, "D");
    for (const w of store.all.warehouse.values()) this.house(w.position, w.name ?? w.id, "W");
    this.drawDrones();
    this.drawScale();
  }

  private line(points: ArrayLike<number>, colour: string, width: number): void {
    const g = this.g;
    g.beginPath();
    for (let i = 0; i < points.length; i += 2) {
      const [x, y] = this.xy(points[i], points[i + 1]);
      if (i) g.lineTo(x, y); else g.moveTo(x, y);
    }
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.lineJoin = "round";
    g.stroke();
  }

  private house(p: Place, name: string, letter: string): void {
    const [x, y] = this.xy(p.lat, p.lon), g = this.g;
    g.fillStyle = this.colours.text;
    g.fillRect(x - 8, y - 8, 16, 16);
    g.fillStyle = this.colours.ground;
    g.textAlign = "center";
    g.fillText(letter, x, y + 1);
    g.textAlign = "left";
    g.fillStyle = this.colours.text;
    g.fillText(name.slice(0, 40), x + 12, y);
  }

  // drawHospitals marks where orders go with a cross in a square.
  private drawHospitals(): void {
    const g = this.g;
    g.strokeStyle = this.colours.faint;
    g.lineWidth = 1.5;
    g.beginPath();
    for (const p of this.store.hospitals.values()) {
      const [x, y] = this.xy(p.lat, p.lon);
      if (x < -10 || y < -10 || x > this.width + 10 || y > this.height + 10) continue;
      g.rect(x - 5, y - 5, 10, 10);
      g.moveTo(x - 2.5, y); g.lineTo(x + 2.5, y);
      g.moveTo(x, y - 2.5); g.lineTo(x, y + 2.5);
    }
    g.stroke();
  }

  // drawRoutes draws the plan of the selection: its drone's, or its own.
  private drawRoutes(): void {
    const s = this.selected, { drone, order, mission } = this.store.all;
    if (!s) return;
    const id = s.kind === "drone" ? drone.get(s.id)?.currentMissionId : s.kind === "order" ? order.get(s.id)?.assignedMissionId : s.id;
    const m = id ? mission.get(id) : undefined;
    if (!m) return;
    const g = this.g, done = m.route.slice(0, m.reachedStops), ahead = m.route.slice(Math.max(0, m.reachedStops - 1));
    const flat = (stops: typeof m.route) => stops.flatMap((w) => [w.position.lat, w.position.lon]);
    this.line(flat(done), this.colours.faint, 3);
    g.setLineDash([7, 5]);
    this.line(flat(ahead), this.colours.accent, 2.5);
    g.setLineDash([]);
    const labels: [number, number][] = []; // where times stand
    m.route.forEach((w, i) => {
      const [x, y] = this.xy(w.position.lat, w.position.lon);
      g.beginPath();
      g.arc(x, y, 4.5, 0, 7);
      g.fillStyle = i < m.reachedStops ? this.colours.faint : this.colours.accent;
      g.fill();
      if (i >= m.reachedStops && w.type !== "DEPOT_START") {
        // Below the stop or above it, where no other time stands.
        const free = [16, -16, 30].find((dy) => labels.every(([lx, ly]) => Math.abs(lx - x) > 56 || Math.abs(ly - y - dy) > 13));
        if (free === undefined) return;
        labels.push([x, y + free]);
        g.fillStyle = this.colours.text;
        g.fillText(clock(time(w.eta)), x + 9, y + free);
      }
    });
  }

  // drawOrders marks where open orders go: colour and size by priority, and a ring that
  // empties with the time left.
  private drawOrders(): void {
    const g = this.g, now = this.store.now(), filter = this.page.filter, tau = 2 * Math.PI;
    for (const o of this.store.all.order.values()) {
      if (!open(o) || filter?.matches("order", o.id) === false) continue;
      const [x, y] = this.xy(o.deliveryLocation.lat, o.deliveryLocation.lon);
      if (x < -20 || y < -20 || x > this.width + 20 || y > this.height + 20) continue;
      const r = o.priority === "CRITICAL" ? 9 : 6, left = share(o, now);
      g.strokeStyle = this.colours[o.priority ?? ""] ?? this.colours.STANDARD;
      g.lineWidth = 1;
      g.beginPath();
      g.arc(x, y, r, 0, tau);
      g.stroke();
      g.lineWidth = 3;
      g.beginPath();
      g.arc(x, y, r, -tau / 4, -tau / 4 + tau * left);
      g.stroke();
      if (left === 0) { // late: a bar across
        g.beginPath();
        g.moveTo(x - r, y + r);
        g.lineTo(x + r, y - r);
        g.stroke();
      }
      if (this.selected?.kind === "order" && this.selected.id === o.id) this.mark(x, y, this.selected);
    }
  }

  // mark encircles the selection, and names it.
  private mark(x: number, y: number, k: Key): void {
    const g = this.g, text = name(this.store, k).slice(0, 40);
    g.fillStyle = this.colours.ground;
    g.fillRect(x + 15, y - 26, g.measureText(text).width + 8, 16);
    g.fillStyle = this.colours.text;
    g.fillText(text, x + 19, y - 18);
    g.strokeStyle = this.colours.accent;
    g.lineWidth = 2.5;
    g.beginPath();
    g.arc(x, y, 14, 0, 7);
    g.stroke();
  }

  // drawDrones draws each drone, those in trouble above the others, or crowds as numbers.
  private drawDrones(): void {
    const all = this.store.marks.size, filter = this.page.filter;
    if (this.xs.length < all) { this.xs = new Float32Array(2 * all); this.ys = new Float32Array(2 * all); }
    const { xs, ys, sight, scale, width, height } = this, stretch = scale / this.squeeze();
    let count = 0;
    this.drawn = 0;
    for (const m of this.store.marks.values()) {
      if (filter?.matches("drone", m.id) === false) continue;
      this.drawn++;
      const x = width / 2 + (m.lon - this.lon) * scale, y = height / 2 - (m.lat - this.lat) * stretch;
      if (x < -10 || y < -10 || x > width + 10 || y > height + 10) continue;
      xs[count] = x;
      ys[count] = y;
      sight[count++] = m;
    }
    const crowds = count > clusterAt && (scale < clusterZoom || count > clusterAlways);
    this.piles = [];
    if (!crowds && (reach / 111320) * stretch < spread) count = this.pile(count);
    sight.length = count; // those that are gone can be forgotten
    this.drones.clear();
    const m = this.selected?.kind === "drone" ? this.store.marks.get(this.selected.id) : undefined;
    if (m) this.line(m.trail, this.colours.faint, 2);
    if (crowds) this.drawCrowds(count); else this.drawShapes(count);
    this.drones.show();
    this.bound = 0;
    if (!m) return;
    const [x, y] = this.xy(m.lat, m.lon), metres = this.store.bound(m);
    if (metres > unsure) this.encircle(x, y, (metres / 111320) * stretch);
    this.mark(x, y, { kind: "drone", id: m.id });
  }

  // encircle shows where a drone may be by now, unless that is more than the map shows.
  private encircle(x: number, y: number, radius: number): void {
    if (radius > 2 * (this.width + this.height)) return;
    this.bound = radius;
    const g = this.g;
    g.strokeStyle = this.colours.faint;
    g.lineWidth = 1.5;
    g.setLineDash([3, 4]);
    g.beginPath();
    g.arc(x, y, radius, 0, 7);
    g.stroke();
    g.setLineDash([]);
  }

  // pile draws as numbers the drones that stand at one place and are not in trouble, and
  // returns how many are left to be drawn: the first ones.
  private pile(count: number): number {
    const { sight, xs, ys, g } = this, { depot, warehouse } = this.store.all, places: Pile[] = [];
    const add = (kind: Pile["kind"], id: string, position: Place) => { const [x, y] = this.xy(position.lat, position.lon); places.push({ kind, id, position, x, y, count: 0 }); };
    for (const d of depot.values()) add("depot", d.id, d.position);
    for (const w of warehouse.values()) add("warehouse", w.id, w.position);
    const at = (i: number) => troubled.has(sight[i].status) ? undefined : places.find((pile) => Math.abs(xs[i] - pile.x) < spread && standsAt(sight[i], pile.position));
    const stands = Array.from({ length: count }, (_, i) => at(i));
    for (const pile of stands) if (pile) pile.count++;
    let left = 0;
    for (let i = 0; i < count; i++) {
      if ((stands[i]?.count ?? 0) > 1) continue;
      xs[left] = xs[i];
      ys[left] = ys[i];
      sight[left++] = sight[i];
    }
    this.piles = places.filter((pile) => pile.count > 1);
    g.textAlign = "center";
    for (const pile of this.piles) {
      const text = String(pile.count), half = 6 + 3.5 * text.length;
      g.fillStyle = this.colours.idle;
      g.beginPath();
      g.roundRect(pile.x - half, pile.y - above - 9, 2 * half, 17, 8);
      g.fill();
      g.fillStyle = this.colours.ground;
      g.fillText(text, pile.x, pile.y - above);
    }
    g.textAlign = "left";
    return left;
  }

  // drawShapes draws the drones in sight, those in trouble above the others.
  private drawShapes(count: number): void {
    const now = this.store.now(), known = new Map<string, number>(), { sight, xs, ys, drones } = this, trouble: number[] = [];
    const put = (i: number) => {
      const m = sight[i], age = now - m.at;
      let look = known.get(m.status);
      if (look === undefined) {
        const [shape, colour] = looks[m.status] ?? unlisted;
        known.set(m.status, (look = drones.look(shape, this.colours[colour])));
      }
      drones.put(look, age > silent ? 2 : age > stale ? 1 : 0, m.heading, xs[i], ys[i]);
    };
    for (let i = 0; i < count; i++) if (troubled.has(sight[i].status)) trouble.push(i); else put(i);
    trouble.forEach(put);
  }

  private drawCrowds(count: number): void {
    const { g, xs, ys } = this, crowds = new Map<number, [number, number, number]>();
    for (let i = 0; i < count; i++) {
      const key = Math.floor(xs[i] / cell) * 65536 + Math.floor(ys[i] / cell), c = crowds.get(key);
      if (c) { c[0] += xs[i]; c[1] += ys[i]; c[2]++; } else crowds.set(key, [xs[i], ys[i], 1]);
    }
    g.textAlign = "center";
    for (const [x, y, n] of crowds.values()) {
      g.fillStyle = this.colours.moving;
      g.beginPath();
      g.arc(x / n, y / n, 8 + 2 * Math.log2(n), 0, 7);
      g.fill();
      g.fillStyle = this.colours.ground;
      g.fillText(String(n), x / n, y / n + 1);
    }
    g.textAlign = "left";
  }

  private drawScale(): void {
    const metres = 111320 * this.squeeze() / this.scale; // a pixel
    const most = metres * 120, power = 10 ** Math.floor(Math.log10(most)), n = [5, 2, 1].find((k) => k * power <= most)! * power;
    this.parts.scale.style.width = `${n / metres}px`;
    set(this.parts.length, n < 1000 ? `${n} m` : `${n / 1000} km`);
  }
}

// limited is a scale that the map can have.
function limited(scale: number): number { return Math.min(2e6, Math.max(2, scale)); }

function share(o: Order, now: number): number {
  const deadline = time(o.deadline), created = time(o.createdAt);
  if (isNaN(deadline)) return 1;
  return Math.max(0, Math.min(1, (deadline - now) / Math.max(1, deadline - (isNaN(created) ? deadline - 3600e3 : created))));
}
