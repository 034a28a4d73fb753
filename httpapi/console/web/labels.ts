import type { View } from "./view";

// Look is how a name is written.
export type Look = "country" | "region" | "city" | "town" | "village" | "quarter" | "road" | "water" | "care" | "place";

// Label is a name on the map. The lower its rank, the earlier it gets its room.
export interface Label {
  text: string; look: Look; lat: number; lon: number; rank: number;
  angle?: number; // for a name along a road, clockwise
  room?: number; // degrees of longitude that it must fit in
  drop?: number; // pixels that it stands below its place
}

// Box is what is written elsewhere: left, top, width and height in CSS pixels.
export type Box = [number, number, number, number];

interface Style { size: number; weight: number; colour: "label" | "label-water" | "text"; capitals?: true; apart: number }
const styles: Record<Look, Style> = { // apart: pixels between two of the same name
  country: { size: 11, weight: 600, colour: "label", capitals: true, apart: 600 },
  region: { size: 10, weight: 500, colour: "label", capitals: true, apart: 600 },
  city: { size: 15, weight: 600, colour: "label", apart: 300 },
  town: { size: 13, weight: 600, colour: "label", apart: 300 },
  village: { size: 12, weight: 500, colour: "label", apart: 300 },
  quarter: { size: 11, weight: 500, colour: "label", apart: 200 },
  road: { size: 11, weight: 400, colour: "label", apart: 260 },
  water: { size: 11, weight: 400, colour: "label-water", apart: 300 },
  care: { size: 12, weight: 500, colour: "text", apart: 20 },
  place: { size: 12, weight: 500, colour: "text", apart: 20 },
};

const halo = 3; // pixels around letters
const turns = 48; // angles that a name may have
const cell = 64; // pixels of the grid in which boxes are looked up
const most = 160; // names
const spritesKept = 400;
const paintedAtOnce = 10; // a frame must not wait for more

interface Sprite { picture: OffscreenCanvas; width: number; height: number }
interface Placed { label: Label; sprite: Sprite | null }

// Labels writes names above the map and below the fleet, none above another.
export class Labels {
  drawn = 0; // names in the last picture
  private placed: Placed[] = [];
  private key = "";
  private sprites = new Map<string, Sprite>();
  private colours: Record<string, string> = {};

  // restyle takes new colours.
  restyle(colours: Record<string, string>): void {
    this.colours = colours;
    this.sprites.clear();
    this.key = "";
  }

  // draw writes the names that find room. They are placed anew when key changes; while the map only moves they stay. It
  // returns whether some are still to be painted.
  draw(g: CanvasRenderingContext2D, view: View, key: string, gather: () => { labels: Label[]; taken: Box[] }): boolean {
    if (key !== this.key) {
      this.key = key;
      const { labels, taken } = gather();
      this.place(view, labels, taken);
    }
    let paints = paintedAtOnce, more = false;
    this.drawn = 0;
    for (const p of this.placed) {
      const x = view.x(p.label.lon), y = view.y(p.label.lat) + (p.label.drop ?? 0);
      if (x < -150 || y < -100 || x > view.width + 150 || y > view.height + 100) continue;
      if (!p.sprite) {
        p.sprite = this.sprites.get(spriteKey(p.label)) ?? null;
        if (!p.sprite) {
          if (paints-- <= 0) { more = true; continue; }
          p.sprite = this.paint(p.label, view.ratio);
        }
      }
      // Whole pixels of the screen: letters stay sharp.
      const snap = (v: number) => Math.round(v * view.ratio) / view.ratio;
      g.drawImage(p.sprite.picture, snap(x - p.sprite.width / 2), snap(y - p.sprite.height / 2), p.sprite.width, p.sprite.height);
      this.drawn++;
    }
    return more;
  }

  // place chooses the names, in the order of their ranks.
  private place(view: View, labels: Label[], taken: Box[]): void {
    const grid = new Map<number, Box[]>(), same = new Map<string, [number, number][]>();
    const cells = (b: Box, take: (boxes: Box[]) => boolean | void): boolean => {
      for (let x = Math.floor(b[0] / cell); x <= Math.floor((b[0] + b[2]) / cell); x++) {
        for (let y = Math.floor(b[1] / cell); y <= Math.floor((b[1] + b[3]) / cell); y++) {
          const at = x * 65536 + y;
          let boxes = grid.get(at);
          if (!boxes) grid.set(at, (boxes = []));
          if (take(boxes)) return true;
        }
      }
      return false;
    };
    const occupy = (b: Box) => { cells(b, (boxes) => { boxes.push(b); }); };
    const occupied = (b: Box) => cells(b, (boxes) => boxes.some((o) => b[0] < o[0] + o[2] && o[0] < b[0] + b[2] && b[1] < o[1] + o[3] && o[1] < b[1] + b[3]));
    taken.forEach(occupy);
    this.placed = [];
    for (const label of [...labels].sort((a, b) => a.rank - b.rank)) {
      if (this.placed.length >= most) break;
      const { size, apart } = styles[label.look], length = lengthOf(label), turn = label.angle ?? 0;
      if (label.room !== undefined && label.room * view.scale < length) continue;
      const x = view.x(label.lon), below = label.drop ?? 0, at = view.y(label.lat);
      let y = at + below;
      const near = same.get(label.text) ?? [];
      if (near.some(([ox, oy]) => Math.hypot(ox - x, oy - y) < apart)) continue;
      const width = Math.abs(Math.cos(turn)) * length + Math.abs(Math.sin(turn)) * size, height = Math.abs(Math.sin(turn)) * length + Math.abs(Math.cos(turn)) * size;
      let box: Box = [x - width / 2 - 2, y - height / 2 - 2, width + 4, height + 4];
      if (below && occupied(box)) { // above it, then
        y = at - below;
        box = [box[0], y - height / 2 - 2, box[2], box[3]];
      }
      if (occupied(box)) continue;
      occupy(box);
      same.set(label.text, [...near, [x, y]]);
      this.placed.push({ label: { ...label, drop: y - at }, sprite: null });
    }
  }

  // paint writes a name once, to be copied.
  private paint(label: Label, ratio: number): Sprite {
    const { size, weight, colour, capitals } = styles[label.look], text = capitals ? label.text.toUpperCase() : label.text, font = `${weight} ${size}px system-ui, sans-serif`;
    const scratch = new OffscreenCanvas(1, 1).getContext("2d")!;
    scratch.font = font;
    const length = scratch.measureText(text).width + 2 * halo, tall = size * 1.3 + 2 * halo, turn = turnOf(label);
    const width = Math.ceil(Math.abs(Math.cos(turn)) * length + Math.abs(Math.sin(turn)) * tall), height = Math.ceil(Math.abs(Math.sin(turn)) * length + Math.abs(Math.cos(turn)) * tall);
    const picture = new OffscreenCanvas(Math.ceil(width * ratio), Math.ceil(height * ratio)), g = picture.getContext("2d")!;
    g.scale(picture.width / width, picture.height / height);
    g.translate(width / 2, height / 2);
    g.rotate(turn);
    g.font = font;
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.lineJoin = "round";
    g.lineWidth = halo;
    g.strokeStyle = this.colours.ground;
    g.strokeText(text, 0, 0);
    g.fillStyle = this.colours[colour];
    g.fillText(text, 0, 0);
    const sprite = { picture, width, height };
    this.sprites.set(spriteKey(label), sprite);
    if (this.sprites.size > spritesKept) this.sprites.delete(this.sprites.keys().next().value!);
    return sprite;
  }
}

function turnOf(label: Label): number { return (Math.round(((label.angle ?? 0) / (2 * Math.PI)) * turns) / turns) * 2 * Math.PI; }

function spriteKey(label: Label): string { return `${label.look} ${turnOf(label)} ${label.text}`; }

// lengthOf is about how wide a name is, in CSS pixels: measuring hundreds takes too long.
function lengthOf(label: Label): number {
  const { size, capitals } = styles[label.look];
  let units = 0;
  for (const c of label.text) units += c.codePointAt(0)! > 0x2e80 ? 1.05 : capitals ? 0.7 : 0.56;
  return units * size + 2 * halo;
}
