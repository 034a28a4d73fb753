// Sprites are small pictures of the drones' shapes, copied pixel by pixel: without a GPU
// that takes a tenth of the time of drawing ten thousand shapes.

export type Shape = "arrow" | "circle" | "square" | "triangle" | "cross" | "ring" | "dot" | "frame" | "diamond";

const hollow = new Set<Shape>(["ring", "dot", "frame", "cross"]);
const headings = 32; // directions in which a shape is drawn
const alphas = [1, 0.6, 0.3]; // by how pale
const reach = 11; // CSS pixels from a shape's middle to beyond its edge

// Picture is what a sprite covers, relative to its middle. Runs are what it hides, row by row: where each
// begins and ends, and its colour as 0xAABBGGRR. Through the edges what lies below is seen: places and colours by turns.
interface Picture { runs: Int32Array; edges: Int32Array }

// Layer is a canvas on which sprites lie. It is shown as a whole.
export class Layer {
  private g: CanvasRenderingContext2D;
  private margin = 0; // device pixels around the canvas, so that sprites at its edge need no care
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  private pictures: (Picture | undefined)[] = []; // by look, paleness and heading
  private looks: [Shape, string][] = [];
  private ratio = 1;

  constructor(private canvas: HTMLCanvasElement) { this.g = canvas.getContext("2d")!; }

  // resize sets the size in CSS pixels, and forgets the sprites.
  resize(width: number, height: number, ratio: number): void {
    this.ratio = ratio;
    this.margin = Math.ceil(reach * ratio);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.image = new ImageData(this.canvas.width + 2 * this.margin, this.canvas.height + 2 * this.margin);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.restyle();
  }

  // restyle forgets the sprites: their colours have changed.
  restyle(): void {
    this.pictures = [];
    this.looks = [];
  }

  // look is the number of a shape in a colour, until the next restyle.
  look(shape: Shape, colour: string): number {
    const known = this.looks.findIndex(([s, c]) => s === shape && c === colour);
    return known < 0 ? this.looks.push([shape, colour]) - 1 : known;
  }

  clear(): void { this.pixels.fill(0); }

  show(): void { this.g.putImageData(this.image, -this.margin, -this.margin); }

  // put copies a sprite to a place in CSS pixels, at most reach outside of the canvas.
  put(look: number, pale: number, heading: number, x: number, y: number): void {
    const turned = Math.round((heading / (2 * Math.PI)) * headings) & (headings - 1), key = (look * alphas.length + pale) * headings + turned;
    const { runs, edges } = (this.pictures[key] ??= this.paint(...this.looks[look], alphas[pale], (turned / headings) * 2 * Math.PI)), pixels = this.pixels;
    const at = (Math.round(y * this.ratio) + this.margin) * this.image.width + Math.round(x * this.ratio) + this.margin;
    for (let i = 0; i < runs.length; i += 3) {
      const end = at + runs[i + 1], c = runs[i + 2];
      for (let to = at + runs[i]; to < end; to++) pixels[to] = c;
    }
    for (let i = 0; i < edges.length; i += 2) {
      const to = at + edges[i], under = pixels[to];
      pixels[to] = under === 0 ? edges[i + 1] : over(edges[i + 1], under);
    }
  }

  private paint(shape: Shape, colour: string, alpha: number, heading: number): Picture {
    const half = this.margin, size = 2 * half + 1, scratch = new OffscreenCanvas(size, size), g = scratch.getContext("2d", { willReadFrequently: true })!;
    g.translate(half + 0.5, half + 0.5);
    g.scale(this.ratio, this.ratio);
    g.globalAlpha = alpha;
    stamp(g, shape, colour, 0, 0, heading);
    const runs: number[] = [], edges: number[] = [];
    new Int32Array(g.getImageData(0, 0, size, size).data.buffer).forEach((c, i) => {
      const at = (Math.floor(i / size) - half) * this.image.width + (i % size) - half;
      if (c >>> 24 === 0) return;
      if (c >>> 24 < 255) edges.push(at, c);
      else if (runs.at(-2) === at && runs.at(-1) === c) runs[runs.length - 2]++;
      else runs.push(at, at + 1, c);
    });
    return { runs: Int32Array.from(runs), edges: Int32Array.from(edges) };
  }
}

// over lays a colour that lets some light through over another. It counts in whole
// numbers, two channels at once: pixels where sprites overlap are most of the work. Over
// an edge, which lets light through as well, the denser of the two stays.
function over(c: number, under: number): number {
  const a = c >>> 24, b = 255 - a;
  if (under >>> 24 !== 255) return a >= under >>> 24 ? c : under;
  const redBlue = (((c & 0xff00ff) * a + (under & 0xff00ff) * b) >>> 8) & 0xff00ff;
  const green = ((c >>> 8) & 255) * a + ((under >>> 8) & 255) * b;
  return (0xff000000 | redBlue | (green & 0xff00)) >>> 0;
}

// stamp draws a drone's shape.
export function stamp(g: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D, shape: Shape, colour: string, x: number, y: number, heading: number): void {
  const r = 6, turn = (dx: number, dy: number): [number, number] =>
    [x + dx * Math.cos(heading) - dy * Math.sin(heading), y + dx * Math.sin(heading) + dy * Math.cos(heading)];
  const polygon = (...points: number[]) => {
    for (let i = 0; i < points.length; i += 2) {
      const [px, py] = turn(points[i], points[i + 1]);
      if (i) g.lineTo(px, py); else g.moveTo(px, py);
    }
    g.closePath();
  };
  g.fillStyle = g.strokeStyle = colour;
  g.lineWidth = 2.5;
  g.beginPath();
  switch (shape) {
    case "arrow": polygon(0, -r - 2, r - 1, r, 0, r - 3, 1 - r, r); break;
    case "diamond": polygon(0, -r - 2, r - 1, 0, 0, r, 1 - r, 0); break;
    case "triangle": heading = 0; polygon(0, -r, r, r - 1, -r, r - 1); break;
    case "square": g.rect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2); break;
    case "cross": g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r); break;
    case "frame": g.rect(x - r + 2, y - r + 2, 2 * r - 4, 2 * r - 4); break;
    case "dot": g.arc(x, y, r - 1, 0, 7); g.moveTo(x + 1, y); g.arc(x, y, 1, 0, 7); break;
    default: g.arc(x, y, r - 1, 0, 7);
  }
  if (hollow.has(shape)) g.stroke(); else g.fill();
}
