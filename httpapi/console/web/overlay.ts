import type { Label } from "./labels";
import type { Place } from "./types";
import type { View } from "./view";

// Shape is a point, line or area of the operator's file. Its parts are longitudes and latitudes by turns.
interface Shape { type: "point" | "line" | "area"; name?: string; kind?: string; colour: string; parts: number[][] }
export interface Known extends Shape { box: [number, number, number, number]; middle: Place }

// The variables of the style sheet that stand for the file's classes of colour.
const colourOf: Record<string, string> = { neutral: "faint", info: "accent", good: "idle", caution: "charging", danger: "emergency" };

// Overlay draws what the operator's file adds to the map.
export class Overlay {
  shapes: Known[] = [];
  named: Known[] = []; // those to list, in order
  chosen: Known | null = null; // in the list
  failed = ""; // why it is not there

  constructor(url: string, private changed: () => void) {
    fetch(url).then(async (resp) => {
      if (!resp.ok) throw new Error(`the State Manager answers ${resp.status}`);
      this.shapes = ((await resp.json()) as { shapes: Shape[] }).shapes.map(known);
      this.named = this.shapes.filter((s) => s.name).sort((a, b) => a.name!.localeCompare(b.name!));
    }).catch((err) => { this.failed = (err as Error).message; }).finally(changed);
  }

  // choose marks a shape on the map; null for none.
  choose(s: Known | null): void {
    this.chosen = s;
    this.changed();
  }

  // labels are the names of what is drawn; they come before those of the map.
  labels(): Label[] {
    return this.shapes.filter((s) => s.name && s.type !== "line").map((s) =>
      ({ text: s.name!, look: "place", lat: s.middle.lat, lon: s.middle.lon, rank: s.type === "point" ? -10 : -5, drop: s.type === "point" ? 16 : 0 }));
  }

  draw(g: CanvasRenderingContext2D, view: View, colours: Record<string, string>): void {
    for (const s of this.shapes) {
      if (!view.sees(...s.box)) continue;
      const colour = colours[colourOf[s.colour]], on = s === this.chosen;
      g.strokeStyle = g.fillStyle = colour;
      g.lineWidth = on ? 4 : 2;
      if (s.type === "point") { this.mark(g, view.x(s.middle.lon), view.y(s.middle.lat), s.kind ?? "", on); continue; }
      g.beginPath();
      for (const part of s.parts) {
        for (let i = 0; i < part.length; i += 2) {
          const x = view.x(part[i]), y = view.y(part[i + 1]);
          if (i) g.lineTo(x, y); else g.moveTo(x, y);
        }
        if (s.type === "area") g.closePath();
      }
      if (s.type === "area") {
        g.globalAlpha = 0.16;
        g.fill("evenodd");
        g.globalAlpha = 1;
      }
      g.stroke();
    }
  }

  // mark draws a point: an H in a ring for a helipad, a cross for a hospital, a dot for others.
  private mark(g: CanvasRenderingContext2D, x: number, y: number, kind: string, on: boolean): void {
    g.beginPath();
    switch (kind.toLowerCase()) {
      case "helipad": case "heliport":
        g.arc(x, y, 7, 0, 7);
        for (const dx of [-2.5, 2.5]) { g.moveTo(x + dx, y - 3.5); g.lineTo(x + dx, y + 3.5); }
        g.moveTo(x - 2.5, y);
        g.lineTo(x + 2.5, y);
        g.stroke();
        break;
      case "hospital": case "clinic":
        g.rect(x - 2, y - 6, 4, 12);
        g.rect(x - 6, y - 2, 12, 4);
        g.fill();
        break;
      default:
        g.arc(x, y, 4, 0, 7);
        g.fill();
    }
    if (!on) return;
    g.beginPath();
    g.arc(x, y, 13, 0, 7);
    g.stroke();
  }
}

function known(s: Shape): Known {
  const box: Known["box"] = [90, 180, -90, -180];
  for (const part of s.parts) {
    for (let i = 0; i < part.length; i += 2) {
      box[0] = Math.min(box[0], part[i + 1]);
      box[1] = Math.min(box[1], part[i]);
      box[2] = Math.max(box[2], part[i + 1]);
      box[3] = Math.max(box[3], part[i]);
    }
  }
  return { ...s, box, middle: { lat: (box[0] + box[2]) / 2, lon: (box[1] + box[3]) / 2 } };
}
