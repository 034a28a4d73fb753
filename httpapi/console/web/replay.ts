import type { Store } from "./store";

// Frame is where the drones were at a moment.
export interface Frame { at: number; ids: string[]; places: Float32Array; statuses: string[] }

const hour = 3600e3; // ms
const most = 4e6; // drones in all frames: about 100 MB with their strings shared

// Replay remembers where the drones were. It forgets the oldest frames after an hour, or
// when there are too many.
export class Replay {
  readonly frames: Frame[] = [];
  private held = 0;
  private ids: string[] = [];

  remember(s: Store): void {
    const n = s.marks.size;
    if (!n) return;
    // Frames of the same drones share one list of ids.
    if (n !== this.ids.length || this.ids.some((id) => !s.marks.has(id))) this.ids = [...s.marks.keys()];
    const places = new Float32Array(2 * n), statuses = new Array<string>(n);
    this.ids.forEach((id, i) => {
      const m = s.marks.get(id)!;
      places[2 * i] = m.lat;
      places[2 * i + 1] = m.lon;
      statuses[i] = m.status;
    });
    this.frames.push({ at: s.now(), ids: this.ids, places, statuses });
    this.held += n;
    while (this.held > most || this.frames[0].at < s.now() - hour) this.held -= this.frames.shift()!.ids.length;
  }
}
