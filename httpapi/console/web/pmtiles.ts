// A reader of PMTiles version 3: https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md

const headerSize = 127;
const types: Record<number, string> = { 2: "image/png", 3: "image/jpeg", 4: "image/webp", 5: "image/avif" }; // of pictures
const leavesKept = 64;
const depth = 4; // of directories, at most

interface Entry { id: number; offset: number; length: number; run: number }

// tileId is the place of a tile in the archive: zooms in turn, each along a Hilbert curve.
export function tileId(z: number, x: number, y: number): number {
  let id = (4 ** z - 1) / 3;
  for (let s = 2 ** (z - 1); s >= 1; s /= 2) {
    const rx = x & s ? 1 : 0, ry = y & s ? 1 : 0;
    id += s * s * ((3 * rx) ^ ry);
    if (!ry) {
      if (rx) { x = s - 1 - x; y = s - 1 - y; }
      [x, y] = [y, x];
    }
  }
  return id;
}

// entriesOf decodes a directory: counts and differences as numbers of variable length,
// column by column.
export function entriesOf(bytes: Uint8Array): Entry[] {
  let at = 0;
  const next = () => {
    let n = 0;
    for (let factor = 1; ; factor *= 128) {
      const b = bytes[at++];
      if (b === undefined) throw new Error("a directory of the map ends early");
      n += (b & 127) * factor;
      if (b < 128) return n;
    }
  };
  const entries: Entry[] = [];
  let id = 0;
  for (let n = next(); entries.length < n;) entries.push({ id: (id += next()), offset: 0, length: 0, run: 0 });
  for (const e of entries) e.run = next();
  for (const e of entries) e.length = next();
  entries.forEach((e, i) => {
    const offset = next(), before = entries[i - 1];
    e.offset = offset === 0 && before ? before.offset + before.length : offset - 1;
  });
  return entries;
}

// find is the last entry that does not begin after a tile.
function find(entries: Entry[], id: number): Entry | undefined {
  let low = 0, high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].id <= id) low = middle + 1; else high = middle;
  }
  return entries[low - 1];
}

export class Archive {
  minZoom = 0;
  maxZoom = 0;
  type = ""; // of pictures, as browsers name it; "" for vector tiles
  private zipped = false; // directories
  private zippedTiles = false;
  private leaves = 0; // offsets in the file
  private tiles = 0;
  private root: Entry[] = [];
  private directories = new Map<number, Promise<Entry[]>>(); // of the leaves, by offset

  private constructor(private url: string) {}

  // open reads the header and the first directory.
  static async open(url: string): Promise<Archive> {
    const a = new Archive(url), h = new DataView((await a.read(0, headerSize)).buffer), number = (at: number) => Number(h.getBigUint64(at, true));
    a.leaves = number(40);
    a.tiles = number(56);
    a.zipped = h.getUint8(97) === 2;
    a.zippedTiles = h.getUint8(98) === 2;
    a.type = types[h.getUint8(99)] ?? "";
    a.minZoom = h.getUint8(100);
    a.maxZoom = h.getUint8(101);
    a.root = entriesOf(await a.read(number(8), number(16), a.zipped));
    return a;
  }

  // tile is what the archive holds of a tile, unpacked; null if it has none there.
  async tile(z: number, x: number, y: number): Promise<Uint8Array<ArrayBuffer> | null> {
    const id = tileId(z, x, y);
    let entries = this.root;
    for (let level = 0; level < depth; level++) {
      const e = find(entries, id);
      if (!e || (e.run > 0 && id >= e.id + e.run)) return null;
      if (e.run > 0) return this.read(this.tiles + e.offset, e.length, this.zippedTiles);
      entries = await this.leaf(e);
    }
    throw new Error("the map's directories are nested too deep");
  }

  private leaf(e: Entry): Promise<Entry[]> {
    let known = this.directories.get(e.offset);
    if (!known) {
      known = this.read(this.leaves + e.offset, e.length, this.zipped).then(entriesOf);
      known.catch(() => this.directories.delete(e.offset)); // to be read again
      this.directories.set(e.offset, known);
      if (this.directories.size > leavesKept) this.directories.delete(this.directories.keys().next().value!);
    }
    return known;
  }

  private async read(offset: number, length: number, zipped = false): Promise<Uint8Array<ArrayBuffer>> {
    const resp = await fetch(this.url, { headers: { Range: `bytes=${offset}-${offset + length - 1}` } });
    if (resp.status === 503) throw new Error((await resp.text()).trim()); // the file has changed
    if (resp.status !== 206) throw new Error(`the State Manager answers ${resp.status}`);
    const bytes = new Uint8Array(await resp.arrayBuffer());
    if (bytes.length !== length) throw new Error("the map's file is shorter than it says");
    return zipped ? new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()) : bytes;
  }
}
