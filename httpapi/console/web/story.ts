import { button, clock, el, grid, plain } from "./dom";
import { ask, pathOf } from "./session";
import { plannedBy, stopText, time } from "./store";
import type { Key, Mission, Order } from "./types";
import { whyButton } from "./why";

interface Step { at: string; cause: string; what: string; related: string }
interface Story { steps: Step[]; events: { time: string; cause: string; reason?: string }[]; order?: Order; mission?: Mission; malformed?: string[] }

// told are the kinds that have a story.
export const told = ["drone", "order", "mission", "cycle"];

// StoryView shows all that is recorded about the selection, as the command audit does.
export class StoryView {
  readonly root = el("div");
  private shown = "";

  update(k: Key | null): void {
    const id = k ? `${k.kind} ${k.id}` : "";
    if (id === this.shown && this.root.firstChild) return;
    this.shown = id;
    if (!k || !told.includes(k.kind)) {
      this.root.replaceChildren(el("p", "Select a drone, an order or a mission, on the map or in a table.", { class: "note" }));
      return;
    }
    void this.read(k, id);
  }

  private async read(k: Key, id: string): Promise<void> {
    const head = el("h2", `Story of ${id}`, { dir: "auto" }), note = el("p", "Reading…", { class: "note", role: "status", dir: "auto" });
    const again = button("Read again", () => void this.read(k, id));
    this.root.replaceChildren(head, again, ...(k.kind === "order" ? [whyButton(k.id)] : []), note);
    try {
      const s = await ask<Story>(pathOf(k.kind, k.id, "story"));
      if (this.shown !== id) return; // something else was selected
      note.textContent = `${s.steps.length === 1 ? "1 step is" : s.steps.length + " steps are"} recorded, as of ${clock(Date.now())}.`;
      for (const text of s.malformed ?? []) this.root.append(el("p", text, { class: "wrong", dir: "auto" }));
      if (s.mission?.route.length) {
        this.root.append(grid("Route", ["Stop", "What", "Order", "ETA", "Reached"], s.mission.route.map((w, i) =>
          [String(i + 1), stopText(w), w.relatedOrderId ?? "", clock(time(w.eta)), i < s.mission!.reachedStops ? "yes" : ""])));
      }
      if (s.order?.planningDepotId) this.root.append(...planning(s.order, s.events));
      this.root.append(grid("What happened, newest first", ["Time", "Cause", "What"],
        s.steps.reverse().map((l) => [clock(time(l.at)), plain(l.cause), l.what + (l.related ? "\n" + l.related : "")])));
    } catch (err) {
      if (this.shown === id) note.textContent = `The story cannot be read: ${(err as Error).message}`;
    }
  }
}

// planning says which depot's area plans an order, and how it came there: of an order's events
// only hand-overs are a cycle's.
function planning(o: Order, events: Story["events"]): HTMLElement[] {
  const handOvers = events.filter((e) => e.cause === "CYCLE");
  return [el("p", `Planned by depot ${plannedBy(o)}.`, { dir: "auto" }),
    ...(handOvers.length ? [grid("From one area to another", ["Time", "Why"], handOvers.map((e) => [clock(time(e.time)), e.reason ?? ""]))] : [])];
}
