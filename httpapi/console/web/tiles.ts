// A worker that draws vector tiles with the schema of the Protomaps basemap, version 4, so that the page is never kept from a
// frame: https://docs.protomaps.com/basemaps/layers

import type { Answer, Ask, Palette } from "./basemap";
import type { Label, Look } from "./labels";
import { latOf } from "./mercator";
import { Tile, type Feature, type Pen } from "./mvt";
import { Archive } from "./pmtiles";

const kept = 24; // tiles that are decoded
const mostLabels = 150; // of a tile

// Area is what a kind of land is filled with; what is not listed shows the ground.
const areas: Record<string, keyof Palette> = {};
for (const kind of ["park", "wood", "forest", "grass", "grassland", "meadow", "scrub", "nature_reserve", "national_park", "protected_area", "garden", "golf_course",
  "recreation_ground", "cemetery", "orchard", "wetland", "pitch", "playground", "zoo", "village_green", "allotments", "dog_park"]) areas[kind] = "green";
for (const kind of ["industrial", "commercial", "railway", "aerodrome", "airfield", "military", "urban_area"]) areas[kind] = "built";
for (const kind of ["beach", "sand"]) areas[kind] = "sand";
for (const kind of ["hospital"]) areas[kind] = "care";

// Class is how a kind of way is drawn: from a zoom on, full pixels wide at zoom 16, and least at the least.
interface Class { from: number; least: number; full: number; colour: keyof Palette; edge?: true; dash?: number[] }
const classes: Record<string, Class> = { // the later above the earlier
  ferry: { from: 8, least: 1, full: 1.5, colour: "rail", dash: [6, 5] },
  runway: { from: 10, least: 1, full: 26, colour: "street-edge" },
  taxiway: { from: 12, least: 0.5, full: 9, colour: "street-edge" },
  path: { from: 15, least: 0.8, full: 1.4, colour: "street-edge", dash: [3, 2] },
  service: { from: 14, least: 0.6, full: 3, colour: "street" },
  rail: { from: 9, least: 0.7, full: 1.8, colour: "rail" },
  minor: { from: 12, least: 0.5, full: 6, colour: "street", edge: true },
  link: { from: 12, least: 0.6, full: 6, colour: "highway", edge: true },
  major: { from: 7, least: 0.8, full: 8, colour: "street", edge: true },
  highway: { from: 4, least: 1.1, full: 11, colour: "highway", edge: true },
};

function classOf(f: Feature): string {
  const { kind, kind_detail: detail } = f.has;
  switch (kind) {
    case "highway": return f.has.is_link ? "link" : "highway";
    case "major_road": return "major";
    case "minor_road": return detail === "service" ? "service" : "minor";
    case "path": case "other": return "path";
    case "rail": return f.has.is_tunnel ? "" : "rail";
    case "aeroway": return String(detail);
    default: return String(kind);
  }
}

// Sheet is where a tile, or a part of one, is drawn.
class Sheet {
  readonly g: OffscreenCanvasRenderingContext2D;
  private canvas: OffscreenCanvas;
  private left: number;
  private top: number;
  private wide: number; // of the whole tile
  private dot: number; // pixels of the picture to a CSS pixel

  constructor(private tile: Tile, private ask: Ask) {
    const part = 2 ** Math.max(0, ask.z - ask.maxZoom);
    this.canvas = new OffscreenCanvas(ask.side, ask.side);
    this.g = this.canvas.getContext("2d", { alpha: false })!;
    this.wide = ask.side * part;
    this.left = -(ask.x % part) * ask.side;
    this.top = -(ask.y % part) * ask.side;
    this.dot = ask.side / 512;
  }

  paint(): ImageBitmap {
    const { g, ask } = this, { palette: p, z } = ask;
    g.fillStyle = p.ground;
    g.fillRect(0, 0, ask.side, ask.side);
    g.lineJoin = g.lineCap = "round";
    for (const colour of ["built", "green", "sand", "care"] as const) {
      if (z < 8) this.fill("landcover", p[colour], (f) => areas[String(f.has.kind)] === colour);
      this.fill("landuse", p[colour], (f) => areas[String(f.has.kind)] === colour);
    }
    this.fill("water", p.water, () => true);
    if (z >= 9) this.lines("water", p.water, Math.max(0.8, 5 * 1.6 ** (z - 16)), [], (f) => f.has.kind === "river" || f.has.kind === "canal" || (z >= 14 && f.has.kind !== "drain"));
    if (z >= 14) this.fill("buildings", p.building, (f) => f.has.kind !== "address");
    this.ways();
    this.lines("boundaries", p.border, 1.4, [7, 3], (f) => f.has.kind === "country");
    if (z >= 5) this.lines("boundaries", p.border, 0.8, [3, 3], (f) => f.has.kind === "region");
    return this.canvas.transferToImageBitmap();
  }

  private trace(layer: string, pen: Pen, takes: (f: Feature) => boolean): void {
    const l = this.tile.layers.get(layer);
    if (l) for (const f of l.features) if (takes(f)) this.tile.trace(f, pen, this.wide / l.extent, this.left, this.top);
  }

  private fill(layer: string, colour: string, takes: (f: Feature) => boolean): void {
    this.g.beginPath();
    this.trace(layer, this.g, (f) => f.type === 3 && takes(f));
    this.g.fillStyle = colour;
    this.g.fill();
  }

  private lines(layer: string, colour: string, width: number, dash: number[], takes: (f: Feature) => boolean): void {
    const path = new Path2D();
    this.trace(layer, path, (f) => f.type === 2 && takes(f));
    this.stroke(path, colour, width, dash);
  }

  private stroke(path: Path2D, colour: string, width: number, dash: number[] = []): void {
    const g = this.g;
    g.strokeStyle = colour;
    g.lineWidth = width * this.dot;
    g.setLineDash(dash.map((d) => d * this.dot));
    g.stroke(path);
  }

  // ways draws roads, rails and runways: all edges first, so that ways join.
  private ways(): void {
    const { z, palette: p } = this.ask, paths = new Map<string, Path2D>();
    const all = this.tile.layers.get("roads");
    for (const f of all?.features ?? []) {
      const name = f.type === 2 ? classOf(f) : "", c = classes[name];
      if (!c || z < c.from) continue;
      let path = paths.get(name);
      if (!path) paths.set(name, (path = new Path2D()));
      this.tile.trace(f, path, this.wide / all!.extent, this.left, this.top);
    }
    for (const edges of [true, false]) {
      for (const [name, c] of Object.entries(classes)) {
        const path = paths.get(name), width = Math.max(c.least, c.full * 1.6 ** (z - 16));
        if (!path || (edges && (!c.edge || z < 11))) continue;
        // Far out a pale road without an edge would be lost.
        if (edges) this.stroke(path, p["street-edge"], width + 1.6); else this.stroke(path, c.edge && z < 11 ? p["street-edge"] : p[c.colour], width, c.dash);
      }
    }
  }

  // labels are the names that belong on the picture.
  labels(): Label[] {
    const { ask } = this, { z, side } = ask, n = 2 ** z, found: Label[] = [], stretches = new Map<string, { look: Look; rank: number; s: Stretch }>();
    const put = (text: string, look: Look, x: number, y: number, rank: number, more: Partial<Label> = {}) => {
      if (x < 0 || y < 0 || x >= side || y >= side) return; // it is another tile's
      found.push({ text, look, lat: latOf((ask.y + y / side) / n), lon: ((ask.x + x / side) / n) * 360 - 180, rank, ...more });
    };
    const each = (layer: string, take: (f: Feature, text: string) => void) => {
      for (const f of this.tile.layers.get(layer)?.features ?? []) {
        const text = String(f.has["name:" + ask.language] ?? f.has.name ?? "").slice(0, 60);
        if (text && Number(f.has.min_zoom ?? 0) <= z) take(f, text);
      }
    };
    const at = (f: Feature, layer: string, done: (x: number, y: number) => void) => this.tile.trace(f, { moveTo: done, lineTo() {}, closePath() {} }, this.wide / this.tile.layers.get(layer)!.extent, this.left, this.top);
    const along = (f: Feature, layer: string, text: string, look: Look, rank: number) => {
      let known = stretches.get(look + text);
      if (!known) stretches.set(look + text, (known = { look, rank, s: new Stretch(side) }));
      this.tile.trace(f, known.s, this.wide / this.tile.layers.get(layer)!.extent, this.left, this.top);
    };
    each("places", (f, text) => {
      const [look, rank] = placeOf(f, z);
      if (look) at(f, "places", (x, y) => put(text, look, x, y, rank));
    });
    each("pois", (f, text) => {
      const care = f.has.kind === "hospital";
      if (care || f.has.kind === "aerodrome" || f.has.kind === "heliport") at(f, "pois", (x, y) => put(text, care ? "care" : "quarter", x, y, care ? 25 : 26));
    });
    each("water", (f, text) => {
      if (f.type === 1) at(f, "water", (x, y) => put(text, "water", x, y, f.has.kind === "ocean" || f.has.kind === "sea" ? 5 : 45));
      if (f.type === 2 && z >= 12) along(f, "water", text, "water", 58);
    });
    each("roads", (f, text) => {
      const name = f.type === 2 ? classOf(f) : "", minor = name === "minor";
      if (z >= (minor ? 15 : 12) && (minor || name === "major" || name === "highway")) along(f, "roads", text, "road", minor ? 60 : 55);
    });
    for (const [key, { look, rank, s }] of stretches) {
      const upright = Math.abs(s.angle) > Math.PI / 2 ? s.angle - Math.sign(s.angle) * Math.PI : s.angle;
      if (s.length > 40 * this.dot) put(key.slice(look.length), look, s.x, s.y, rank, { angle: upright, room: (s.length / side / n) * 360 });
    }
    return found.sort((a, b) => a.rank - b.rank || (b.room ?? 0) - (a.room ?? 0)).slice(0, mostLabels);
  }
}

function placeOf(f: Feature, z: number): [Look | "", number] {
  const people = Number(f.has.population_rank ?? 0); // 0 to 18
  switch (f.has.kind) {
    case "country": return [z > 7 ? "" : "country", 0];
    case "region": return [z > 9 ? "" : "region", 12];
    case "locality": return [people >= 10 ? "city" : people >= 6 ? "town" : "village", 30 - people];
    default: return [z > 16 ? "" : "quarter", 40];
  }
}

// Stretch finds the longest part of lines that is nearly straight and on the picture.
class Stretch implements Pen {
  length = 0;
  x = 0; // its middle
  y = 0;
  angle = 0;
  private px = 0;
  private py = 0;
  private from: { x: number; y: number; angle: number } | null = null;

  constructor(private side: number) {}

  moveTo(x: number, y: number): void {
    this.px = x;
    this.py = y;
    this.from = null;
  }

  closePath(): void {} // lines stay open

  lineTo(x: number, y: number): void {
    const dx = x - this.px, dy = y - this.py, [t, u] = this.within(dx, dy);
    if (t < u) {
      const ax = this.px + t * dx, ay = this.py + t * dy, bx = this.px + u * dx, by = this.py + u * dy, angle = Math.atan2(dy, dx);
      if (!this.from || Math.cos(angle - this.from.angle) < 0.96) this.from = { x: ax, y: ay, angle };
      const length = Math.hypot(bx - this.from.x, by - this.from.y);
      if (length > this.length) {
        Object.assign(this, { length, x: (bx + this.from.x) / 2, y: (by + this.from.y) / 2, angle: Math.atan2(by - this.from.y, bx - this.from.x) });
      }
    }
    if (t >= u || u < 1) this.from = null;
    this.px = x;
    this.py = y;
  }

  // within is which part of a step lies on the picture: from and to, as shares of it.
  private within(dx: number, dy: number): [number, number] {
    let t = 0, u = 1;
    for (const [d, p] of [[dx, this.px], [dy, this.py]]) {
      if (d === 0) { if (p < 0 || p > this.side) return [1, 0]; continue; }
      const a = -p / d, b = (this.side - p) / d;
      t = Math.max(t, Math.min(a, b));
      u = Math.min(u, Math.max(a, b));
    }
    return [t, u];
  }
}

let archive: Promise<Archive> | null = null;
const tiles = new Map<string, Promise<Tile | null>>();

// tileOf is the tile of the file that a picture shows, or shows a part of.
function tileOf(ask: Ask): Promise<Tile | null> {
  const up = Math.max(0, ask.z - ask.maxZoom), [z, x, y] = [ask.z - up, ask.x >> up, ask.y >> up], key = `${z}/${x}/${y}`;
  archive ??= Archive.open(ask.url);
  archive.catch(() => { archive = null; }); // to be opened again
  const wanted = new Set(["kind", "kind_detail", "name", "name:" + ask.language, "min_zoom", "population_rank", "is_link", "is_tunnel"]);
  const tile = tiles.get(key) ?? archive.then(async (a) => { const bytes = await a.tile(z, x, y); return bytes && new Tile(bytes, wanted); });
  tiles.delete(key);
  tiles.set(key, tile); // the newest comes last
  tile.catch(() => tiles.delete(key));
  if (tiles.size > kept) tiles.delete(tiles.keys().next().value!);
  return tile;
}

async function answer(ask: Ask): Promise<Answer> {
  try {
    const tile = await tileOf(ask), sheet = tile && new Sheet(tile, ask);
    return { id: ask.id, picture: sheet && sheet.paint(), labels: sheet ? sheet.labels() : [], failed: "" };
  } catch (err) {
    return { id: ask.id, picture: null, labels: [], failed: (err as Error).message };
  }
}

// To the types a worker is what the page is to it.
const page = globalThis as unknown as Worker;
page.onmessage = (e: MessageEvent<Ask>) => void answer(e.data).then((a) => page.postMessage(a, a.picture ? [a.picture] : []));
