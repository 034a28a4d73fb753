import type { Label } from "./labels";
import type { Mark, Store } from "./store";
import type { View } from "./view";

const farOut = 400; // pixels a degree below which coasts and borders are shown: closer they are too coarse
const rings = [5, 10]; // km around depots
const mostRings = 12; // depots in sight; more would hide one another
const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 45]; // degrees between the grid's lines
const apart = 110; // pixels between them, at least

interface Name { text: string; lat: number; lon: number; wide: number }
interface Outline { points: Float32Array; box: [number, number, number, number] } // longitudes and latitudes by turns; south, west, north, east

// Bare is what lies below the fleet where no map is configured.
export class Bare {
  private land: Outline[] = [];
  private borders: Outline[] = [];
  names: Name[] = [];
  private trace = new Trace();

  constructor(changed: () => void) {
    fetch("/console/world.json").then(async (resp) => {
      if (!resp.ok) return;
      const world = (await resp.json()) as { land: number[][]; borders: number[][]; names: Name[] };
      this.land = world.land.map(outlineOf);
      this.borders = world.borders.map(outlineOf);
      this.names = world.names;
      changed();
    }, () => {}); // the map does without
  }

  draw(g: CanvasRenderingContext2D, view: View, colours: Record<string, string>, store: Store): void {
    if (view.scale < farOut) this.drawWorld(g, view, colours);
    drawGrid(g, view, colours);
    this.trace.draw(g, view, colours, store);
    drawRings(g, view, colours, store);
  }

  // labels are the names of countries.
  labels(view: View): Label[] {
    if (view.scale >= farOut) return [];
    return this.names.map((n) => ({ text: n.text, look: "country", lat: n.lat, lon: n.lon, rank: 1000 - n.wide, room: 1.4 * n.wide }));
  }

  private drawWorld(g: CanvasRenderingContext2D, view: View, colours: Record<string, string>): void {
    if (this.land.length === 0) return;
    g.fillStyle = colours.water;
    g.fillRect(0, 0, view.width, view.height);
    g.beginPath();
    for (const o of this.land) draw(g, view, o);
    g.fillStyle = colours.ground;
    g.fill("evenodd");
    g.lineWidth = 1;
    g.strokeStyle = colours.faint;
    g.stroke();
    g.beginPath();
    for (const o of this.borders) draw(g, view, o);
    g.strokeStyle = colours.border;
    g.setLineDash([5, 3]);
    g.stroke();
    g.setLineDash([]);
  }
}

// outlineOf reads an outline, which holds steps of a fiftieth of a degree.
function outlineOf(list: number[]): Outline {
  const points = new Float32Array(list.length), box: Outline["box"] = [90, 180, -90, -180];
  let lon = 0, lat = 0;
  for (let i = 0; i < list.length; i += 2) {
    points[i] = (lon += list[i]) / 50;
    points[i + 1] = (lat += list[i + 1]) / 50;
    box[0] = Math.min(box[0], points[i + 1]);
    box[1] = Math.min(box[1], points[i]);
    box[2] = Math.max(box[2], points[i + 1]);
    box[3] = Math.max(box[3], points[i]);
  }
  return { points, box };
}

// draw adds an outline to the path, without corners that nobody could see.
function draw(g: CanvasRenderingContext2D, view: View, o: Outline): void {
  if (!view.sees(...o.box)) return;
  let lastX = NaN, lastY = NaN;
  for (let i = 0; i < o.points.length; i += 2) {
    const x = view.x(o.points[i]), y = view.y(o.points[i + 1]);
    if (i === 0) g.moveTo(x, y);
    else if (Math.abs(x - lastX) + Math.abs(y - lastY) < 1.5 && i < o.points.length - 2) continue;
    else g.lineTo(x, y);
    lastX = x;
    lastY = y;
  }
}

// drawGrid draws parallels and meridians, with their degrees at the edges.
function drawGrid(g: CanvasRenderingContext2D, view: View, colours: Record<string, string>): void {
  const step = steps.find((s) => s * view.scale >= apart);
  if (!step) return;
  const digits = Math.max(0, Math.ceil(-Math.log10(step))), from = (v: number) => Math.ceil(v / step), degrees = (v: number, sides: string) => `${Math.abs(v).toFixed(digits)}° ${sides[v < 0 ? 1 : 0]}`;
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  g.fillStyle = colours.label;
  g.beginPath();
  for (let i = from(view.west); i * step <= view.east; i++) {
    const x = Math.round(view.x(i * step)) + 0.5;
    g.moveTo(x, 0);
    g.lineTo(x, view.height);
    if (x > 250 && x < view.width - 150) g.fillText(degrees(i * step, "EW"), x + 4, 10);
  }
  for (let i = from(view.south); i * step <= view.north; i++) {
    const y = Math.round(view.y(i * step)) + 0.5;
    g.moveTo(0, y);
    g.lineTo(view.width, y);
    if (y > 60 && y < view.height - 50) g.fillText(degrees(i * step, "NS"), 6, y - 8);
  }
  g.strokeStyle = colours["street-edge"];
  g.lineWidth = 1;
  g.stroke();
}

function drawRings(g: CanvasRenderingContext2D, view: View, colours: Record<string, string>, store: Store): void {
  const depots = [...store.all.depot.values()].filter((d) => view.sees(d.position.lat - 0.1, d.position.lon - 0.1, d.position.lat + 0.1, d.position.lon + 0.1));
  if (depots.length > mostRings) return;
  g.strokeStyle = g.fillStyle = colours.faint;
  g.lineWidth = 1;
  g.setLineDash([2, 4]);
  g.textAlign = "center";
  for (const d of depots) {
    const x = view.x(d.position.lon), y = view.y(d.position.lat);
    for (const km of rings) {
      const r = (km * 1000) / view.metres();
      if (r < 40 || r > 5000) continue;
      g.beginPath();
      g.arc(x, y, r, 0, 7);
      g.stroke();
      g.fillText(`${km} km`, x, y - r - 7);
    }
  }
  g.setLineDash([]);
  g.textAlign = "left";
}

const perDegree = 5000; // cells of the trace: 22 m from south to north
const between = 0.0007; // degrees between two cells of a flight
const margin = 100; // pixels around the map that the picture of the trace has
const mostCells = 6000; // the oldest are forgotten
const visitedAtOnce = 500; // drones
const jump = 0.05; // degrees beyond which a drone has not flown but been moved

// Trace remembers where drones have flown while the page was open.
class Trace {
  private cells = new Set<number>(); // oldest first
  private last = new Map<string, [number, number]>();
  private rest: Iterator<Mark> | null = null; // drones to visit
  private of: Store | null = null;
  private picture: OffscreenCanvas | null = null; // of the trace, kept while the map moves a little
  private drawn = { lat: 0, lon: 0, scale: 0, at: 0 }; // its upper left corner, and when

  // draw copies a picture of the trace, which is drawn anew once a second: thousands of cells take longer than a frame may.
  draw(g: CanvasRenderingContext2D, view: View, colours: Record<string, string>, store: Store): void {
    this.visit(store);
    if (this.cells.size === 0) return;
    let x = view.x(this.drawn.lon), y = view.y(this.drawn.lat);
    const width = Math.round(view.width) + 2 * margin, height = Math.round(view.height) + 2 * margin, now = performance.now();
    const fits = this.picture?.width === width && this.picture.height === height && this.drawn.scale === view.scale && x <= 0 && y <= 0 && x >= -2 * margin && y >= -2 * margin;
    if (!fits || now - this.drawn.at > 1000) {
      this.picture = new OffscreenCanvas(width, height);
      this.paint(this.picture.getContext("2d")!, view, colours);
      this.drawn = { lat: view.lat(-margin), lon: view.lon(-margin), scale: view.scale, at: now };
      x = y = -margin;
    }
    g.globalAlpha = 0.45;
    g.drawImage(this.picture!, x, y);
    g.globalAlpha = 1;
  }

  private paint(g: OffscreenCanvasRenderingContext2D, view: View, colours: Record<string, string>): void {
    const size = Math.max(1.5, Math.min(4, view.scale / 5000));
    g.fillStyle = colours.faint;
    for (const key of this.cells) {
      const x = view.x((key % 1e7) / perDegree - 180) + margin, y = view.y(Math.floor(key / 1e7) / perDegree - 90) + margin;
      if (x > 0 && y > 0 && x < g.canvas.width && y < g.canvas.height) g.fillRect(x - size / 2, y - size / 2, size, size);
    }
  }

  // visit notes where some of the drones are: all of them in turn.
  private visit(store: Store): void {
    if (this.of !== store) {
      this.of = store;
      this.rest = null;
      this.last.clear();
    }
    this.rest ??= store.marks.values();
    for (let i = 0; i < visitedAtOnce; i++) {
      const next = this.rest.next();
      if (next.done) { this.rest = null; break; }
      const { id, lat, lon } = next.value, before = this.last.get(id);
      if (before && before[0] === lat && before[1] === lon) continue;
      this.last.set(id, [lat, lon]);
      if (before) this.fly(before, [lat, lon]);
    }
    if (this.last.size > 2 * store.marks.size) this.last.clear(); // of drones that are gone
    for (const oldest of this.cells) {
      if (this.cells.size <= mostCells) break;
      this.cells.delete(oldest);
    }
  }

  private fly([lat, lon]: [number, number], [toLat, toLon]: [number, number]): void {
    const far = Math.max(Math.abs(toLat - lat), Math.abs(toLon - lon)), n = Math.ceil(far / between);
    if (far > jump) return;
    for (let i = 0; i <= n; i++) {
      const share = n ? i / n : 0, row = Math.round((lat + (toLat - lat) * share + 90) * perDegree), column = Math.round((lon + (toLon - lon) * share + 180) * perDegree);
      this.cells.add(row * 1e7 + column);
    }
  }
}
