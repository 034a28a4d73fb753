import { Bare } from "./coast";
import { byId, set } from "./dom";
import { Labels, type Box, type Label } from "./labels";
import { latOf, rowOf } from "./mercator";
import { Overlay } from "./overlay";
import { Archive } from "./pmtiles";
import type { Store } from "./store";
import type { View } from "./view";

const ancestors = 5; // zooms from which a tile that is missing is filled
const closer = 6; // zooms beyond the last of vector tiles
const again = 30e3; // ms after which a tile that failed is asked for again
const atOnce = 8; // requests
const farthest = 300; // tiles in sight

// palette names the variables of the style sheet that vector tiles are drawn with.
export const palette = ["ground", "water", "green", "built", "care", "sand", "building", "street", "street-edge", "highway", "rail", "border"] as const;
export type Palette = Record<(typeof palette)[number], string>;
const colours = [...palette, "text", "label", "label-water", "faint", "accent", "idle", "charging", "emergency", "dim"];

// Ask is for the picture of a vector tile, side pixels wide. One beyond maxZoom is a part of a tile of the file.
export interface Ask { id: number; url: string; z: number; x: number; y: number; maxZoom: number; side: number; palette: Palette; language: string }

// Answer has no picture if the file has no such tile.
export interface Answer { id: number; picture: ImageBitmap | null; labels: Label[]; failed: string }

interface About { tiles?: string; pmtiles?: string; vector?: boolean; attribution?: string; minZoom?: number; maxZoom?: number; overlay?: string }
type Picture = ImageBitmap | HTMLImageElement;
interface Loaded { picture: Picture | null; labels: Label[] }
interface Tile extends Loaded { key: string; failedAt: number; wanted: number }

// Source is where tiles come from: side CSS pixels wide, about.
interface Source { side: number; kept: number; minZoom: number; maxZoom: number; dimmed: boolean; load(z: number, x: number, y: number): Promise<Loaded> }

// BaseMap draws what lies below the fleet: the operator's tiles, or coasts, a grid and rings around depots; the operator's
// places; and names.
export class BaseMap {
  private source: Source | null = null;
  private bare: Bare | null = null; // without tiles
  overlay: Overlay | null = null; // what the operator adds
  private labels = new Labels();
  private cache = new Map<string, Tile>();
  private used = new Set<Tile>(); // in the last picture
  private loading = 0;
  private frame = 0;
  private style = 0; // counts restyles
  private ratio = 1;
  private colours: Record<string, string> = {};
  private about: About = {};
  private failed = ""; // why, of what was asked for last

  constructor(private changed: () => void) { void this.open(); }

  private async open(): Promise<void> {
    try {
      const resp = await fetch("/console/map.json");
      if (!resp.ok) return; // nobody is signed in
      this.about = (await resp.json()) as About;
      const { tiles, pmtiles, vector, overlay } = this.about;
      if (overlay) this.overlay = new Overlay(overlay, this.changed);
      if (pmtiles) this.source = vector ? this.vector(pmtiles) : await rasterFile(pmtiles);
      else if (tiles) this.source = { side: 256, kept: 300, minZoom: 0, maxZoom: this.about.maxZoom ?? 19, dimmed: true, load: (z, x, y) => image(tiles.replace("{z}", String(z)).replace("{x}", String(x)).replace("{y}", String(y))) };
      else this.bare = new Bare(this.changed);
    } catch (err) {
      this.failed = (err as Error).message;
    }
    this.tell();
    this.changed();
  }

  // vector has a worker draw the tiles, so that the page is never kept from a frame.
  private vector(url: string): Source {
    const worker = new Worker("/console/tiles.js"), waiting = new Map<number, (a: Answer) => void>(), last = this.about.maxZoom ?? 15, language = navigator.language.slice(0, 2);
    let id = 0;
    worker.onmessage = (e: MessageEvent<Answer>) => { waiting.get(e.data.id)?.(e.data); waiting.delete(e.data.id); };
    worker.onerror = () => {
      for (const done of waiting.values()) done({ id: 0, picture: null, labels: [], failed: "the page's script tiles.js does not run" });
      waiting.clear();
    };
    return {
      side: 512, kept: 48, minZoom: this.about.minZoom ?? 0, maxZoom: last + closer, dimmed: false,
      load: (z, x, y) => new Promise((resolve, reject) => {
        waiting.set(++id, (a) => { if (a.failed) reject(new Error(a.failed)); else resolve(a); });
        const ask: Ask = { id, url, z, x, y, maxZoom: last, side: Math.round(512 * Math.min(2, this.ratio)), palette: this.colours as Palette, language };
        worker.postMessage(ask);
      }),
    };
  }

  // restyle takes the colours of the style sheet.
  restyle(): void {
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(colours.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
    this.labels.restyle(this.colours);
    this.style++;
    if (!this.source?.dimmed) this.forget();
  }

  // forget drops all tiles: they have other colours, or too few pixels.
  private forget(): void {
    for (const tile of this.cache.values()) close(tile);
    this.cache.clear();
  }

  // tell names the source, and says if it does not answer.
  private tell(): void {
    set(byId("attribution"), [this.about.attribution ?? "", this.failed && `Parts of the map cannot be loaded: ${this.failed}.`].filter(Boolean).join(" "));
  }

  // draw draws what is in view.
  draw(g: CanvasRenderingContext2D, view: View, store: Store): void {
    this.frame++;
    this.used.clear();
    if (this.ratio !== view.ratio) {
      this.ratio = view.ratio;
      this.restyle();
    }
    if (this.source) this.drawTiles(g, view, this.source);
    this.bare?.draw(g, view, this.colours, store);
    this.overlay?.draw(g, view, this.colours);
    const tiles = [...this.used], key = [view.scale, this.style, store.hospitals.size, store.all.depot.size, store.all.warehouse.size, this.overlay?.shapes.length, this.bare?.names.length, ...tiles.map((t) => t.key)].join();
    if (this.labels.draw(g, view, key, () => ({ labels: [...this.overlay?.labels() ?? [], ...tiles.flatMap((t) => t.labels), ...hospitals(store), ...this.bare?.labels(view) ?? []], taken: taken(view, store) }))) this.changed();
  }

  private drawTiles(g: CanvasRenderingContext2D, view: View, { side, kept, minZoom, maxZoom, dimmed }: Source): void {
    const z = Math.max(minZoom, Math.min(maxZoom, Math.round(Math.log2((360 * view.scale) / side)))), n = 2 ** z;
    const clamp = (v: number) => Math.max(0, Math.min(n - 1, Math.floor(v)));
    const x1 = clamp(((view.west + 180) / 360) * n), x2 = clamp(((view.east + 180) / 360) * n), y1 = clamp(rowOf(view.north) * n), y2 = clamp(rowOf(view.south) * n);
    const count = (x2 - x1 + 1) * (y2 - y1 + 1);
    if (count > farthest) return; // farther out than the map goes
    if (dimmed) g.globalAlpha = Number(this.colours.dim); // so that the fleet stands out
    for (let x = x1; x <= x2; x++) {
      for (let y = y1; y <= y2; y++) {
        // Whole pixels: between others seams would show.
        const left = Math.round(view.x((x / n) * 360 - 180)), top = Math.round(view.y(latOf(y / n))), right = Math.round(view.x(((x + 1) / n) * 360 - 180)), bottom = Math.round(view.y(latOf((y + 1) / n)));
        this.drawTile(g, z, x, y, left, top, right - left, bottom - top, minZoom);
      }
    }
    g.globalAlpha = 1;
    while (this.cache.size > Math.max(kept, 2 * count)) this.drop();
  }

  // drawTile draws a tile, or until it is known the part of a coarser one that lies there, and finer ones.
  private drawTile(g: CanvasRenderingContext2D, z: number, x: number, y: number, left: number, top: number, width: number, height: number, minZoom: number): void {
    const tile = this.tile(z, x, y, true);
    if (tile?.picture) {
      this.used.add(tile);
      g.drawImage(tile.picture, left, top, width, height);
      return;
    }
    for (let up = 1; up <= ancestors && z - up >= minZoom; up++) {
      const k = 2 ** up, coarse = this.tile(z - up, x >> up, y >> up, false);
      if (!coarse?.picture) continue;
      this.used.add(coarse);
      const w = coarse.picture.width / k, h = coarse.picture.height / k;
      g.drawImage(coarse.picture, (x % k) * w, (y % k) * h, w, h, left, top, width, height);
      break;
    }
    for (let i = 0; i < 4; i++) {
      const fine = this.tile(z + 1, 2 * x + (i & 1), 2 * y + (i >> 1), false)?.picture;
      if (fine) g.drawImage(fine, left + ((i & 1) * width) / 2, top + ((i >> 1) * height) / 2, width / 2, height / 2);
    }
  }

  // tile is a tile that is known, and asks for one that is wanted.
  private tile(z: number, x: number, y: number, wanted: boolean): Tile | undefined {
    const key = `${z}/${x}/${y}`, known = this.cache.get(key);
    if (known) known.wanted = this.frame;
    if (!wanted || (known && !(known.failedAt && performance.now() - known.failedAt > again)) || this.loading >= atOnce) return known;
    const tile: Tile = { key, picture: null, labels: [], failedAt: 0, wanted: this.frame };
    this.cache.set(key, tile);
    this.loading++;
    this.source!.load(z, x, y).then((loaded) => {
      Object.assign(tile, { picture: loaded.picture, labels: loaded.labels });
      if (this.cache.get(key) !== tile) close(tile); // it was dropped meanwhile
      this.heard("");
    }, (err) => { tile.failedAt = performance.now(); this.heard((err as Error).message); });
    return tile;
  }

  private heard(failed: string): void {
    this.loading--;
    if (failed !== this.failed) { this.failed = failed; this.tell(); }
    this.changed();
  }

  // drop forgets the tile that was wanted longest ago.
  private drop(): void {
    let oldest: Tile | undefined;
    for (const tile of this.cache.values()) if (!oldest || tile.wanted < oldest.wanted) oldest = tile;
    close(oldest!);
    this.cache.delete(oldest!.key);
  }
}

function close(tile: Tile): void {
  if (tile.picture instanceof ImageBitmap) tile.picture.close();
  tile.picture = null;
}

// hospitals are those who ordered, where their orders go.
function hospitals(store: Store): Label[] {
  const names = new Map<string, Label>();
  for (const { requesterId, deliveryLocation: { lat, lon } } of store.all.order.values()) {
    if (requesterId) names.set(`${lat} ${lon}`, { text: requesterId, look: "care", lat, lon, rank: 20, drop: 15 });
  }
  return [...names.values()];
}

// taken are the boxes of what the fleet's map draws: depots and warehouses with their names, and hospitals.
function taken(view: View, store: Store): Box[] {
  const boxes: Box[] = [];
  for (const p of store.hospitals.values()) boxes.push([view.x(p.lon) - 7, view.y(p.lat) - 7, 14, 14]);
  for (const { id, name, position: p } of [...store.all.depot.values(), ...store.all.warehouse.values()]) {
    boxes.push([view.x(p.lon) - 10, view.y(p.lat) - 10, 26 + 7 * Math.min(40, (name ?? id).length), 20]);
  }
  return boxes;
}

async function rasterFile(url: string): Promise<Source> {
  const archive = await Archive.open(url);
  return {
    side: 256, kept: 300, minZoom: archive.minZoom, maxZoom: archive.maxZoom, dimmed: true,
    load: async (z, x, y) => {
      const bytes = await archive.tile(z, x, y);
      return { picture: bytes && (await createImageBitmap(new Blob([bytes], { type: archive.type }))), labels: [] };
    },
  };
}

function image(url: string): Promise<Loaded> {
  return new Promise((resolve, reject) => {
    const i = new Image();
    i.onload = () => resolve({ picture: i, labels: [] });
    i.onerror = () => reject(new Error("its site does not answer with a picture"));
    i.src = url;
  });
}
