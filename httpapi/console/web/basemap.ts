import { byId, set } from "./dom";
import { Archive } from "./pmtiles";

const side = 256; // CSS pixels of a tile, about
const kept = 300; // tiles
const ancestors = 5; // zooms from which a tile that is missing is filled
const again = 30e3; // ms after which a tile that failed is asked for again
const atOnce = 8; // requests

interface About { tiles?: string; pmtiles?: string; attribution?: string; maxZoom?: number }
type Picture = ImageBitmap | HTMLImageElement;
interface Tile { picture: Picture | null; failedAt: number; wanted: number }
type Load = (z: number, x: number, y: number) => Promise<Picture | null>;

// BaseMap draws the tiles that the operator has configured below the fleet.
export class BaseMap {
  ready = false;
  private load: Load | null = null;
  private minZoom = 0;
  private maxZoom = 19;
  private cache = new Map<string, Tile>();
  private loading = 0;
  private frame = 0;
  private about: About = {};
  private failed = ""; // why, of what was asked for last

  constructor(private changed: () => void) { void this.open(); }

  private async open(): Promise<void> {
    try {
      const resp = await fetch("/console/map.json");
      if (!resp.ok) return; // nobody is signed in
      this.about = (await resp.json()) as About;
      const { tiles, pmtiles } = this.about;
      if (pmtiles) {
        const archive = await Archive.open(pmtiles);
        this.minZoom = archive.minZoom;
        this.maxZoom = archive.maxZoom;
        this.load = (z, x, y) => archive.tile(z, x, y);
      } else if (tiles) {
        this.maxZoom = this.about.maxZoom ?? this.maxZoom;
        this.load = (z, x, y) => image(tiles.replace("{z}", String(z)).replace("{x}", String(x)).replace("{y}", String(y)));
      }
      this.ready = this.load !== null;
    } catch (err) {
      this.failed = (err as Error).message;
    }
    this.tell();
    this.changed();
  }

  // tell names the source, and says if it does not answer.
  private tell(): void {
    set(byId("attribution"), [this.about.attribution ?? "", this.failed && `Parts of the map cannot be loaded: ${this.failed}.`].filter(Boolean).join(" "));
  }

  // draw draws the tiles between two corners. scale is in CSS pixels a degree of
  // longitude, xy places a latitude and longitude.
  draw(g: CanvasRenderingContext2D, north: number, west: number, south: number, east: number, scale: number, xy: (lat: number, lon: number) => [number, number]): void {
    this.frame++;
    const z = Math.max(this.minZoom, Math.min(this.maxZoom, Math.round(Math.log2((360 * scale) / side)))), n = 2 ** z;
    const clamp = (v: number) => Math.max(0, Math.min(n - 1, Math.floor(v)));
    const x1 = clamp(((west + 180) / 360) * n), x2 = clamp(((east + 180) / 360) * n), y1 = clamp(rowOf(north) * n), y2 = clamp(rowOf(south) * n);
    if ((x2 - x1 + 1) * (y2 - y1 + 1) > kept) return; // farther out than the map goes
    for (let x = x1; x <= x2; x++) {
      for (let y = y1; y <= y2; y++) {
        // Whole pixels: between others seams would show.
        const [left, top] = xy(latOf(y / n), (x / n) * 360 - 180).map(Math.round), [right, bottom] = xy(latOf((y + 1) / n), ((x + 1) / n) * 360 - 180).map(Math.round);
        this.drawTile(g, z, x, y, left, top, right - left, bottom - top);
      }
    }
    while (this.cache.size > kept) this.drop();
  }

  // drawTile draws a tile, or the part of a coarser one that lies there.
  private drawTile(g: CanvasRenderingContext2D, z: number, x: number, y: number, left: number, top: number, width: number, height: number): void {
    const tile = this.tile(z, x, y, true)?.picture;
    if (tile) { g.drawImage(tile, left, top, width, height); return; }
    for (let up = 1; up <= ancestors && z - up >= this.minZoom; up++) {
      const k = 2 ** up, coarse = this.tile(z - up, x >> up, y >> up, false)?.picture;
      if (!coarse) continue;
      const w = coarse.width / k, h = coarse.height / k;
      g.drawImage(coarse, (x % k) * w, (y % k) * h, w, h, left, top, width, height);
      return;
    }
  }

  // tile is a tile that is known, and asks for one that is wanted.
  private tile(z: number, x: number, y: number, wanted: boolean): Tile | undefined {
    const key = `${z}/${x}/${y}`, known = this.cache.get(key);
    if (known) known.wanted = this.frame;
    if (!wanted || (known && !(known.failedAt && performance.now() - known.failedAt > again)) || this.loading >= atOnce) return known;
    const tile: Tile = { picture: null, failedAt: 0, wanted: this.frame };
    this.cache.set(key, tile);
    this.loading++;
    this.load!(z, x, y).then((picture) => { tile.picture = picture; this.heard(""); }, (err) => { tile.failedAt = performance.now(); this.heard((err as Error).message); });
    return tile;
  }

  private heard(failed: string): void {
    this.loading--;
    if (failed !== this.failed) { this.failed = failed; this.tell(); }
    this.changed();
  }

  // drop forgets the tile that was wanted longest ago.
  private drop(): void {
    let oldest = "", least = Infinity;
    for (const [key, tile] of this.cache) if (tile.wanted < least) { least = tile.wanted; oldest = key; }
    const gone = this.cache.get(oldest)!;
    if (gone.picture instanceof ImageBitmap) gone.picture.close();
    this.cache.delete(oldest);
  }
}

function image(url: string): Promise<HTMLImageElement> {
  return new Promise((resolve, reject) => {
    const i = new Image();
    i.onload = () => resolve(i);
    i.onerror = () => reject(new Error("its site does not answer with a picture"));
    i.src = url;
  });
}

// rowOf is where a latitude lies in the Mercator projection: 0 at the top, 1 at the bottom.
function rowOf(lat: number): number {
  const sin = Math.sin((Math.max(-85.05, Math.min(85.05, lat)) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sin) / (1 - sin)) / (4 * Math.PI);
}

function latOf(row: number): number { return (Math.atan(Math.sinh(Math.PI * (1 - 2 * row))) * 180) / Math.PI; }
