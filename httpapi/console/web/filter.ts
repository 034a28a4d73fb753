import type { Store } from "./store";
import { tables } from "./tables";
import type { Kind, Mission } from "./types";

// Filter says which entities the page shows. Map and tables ask the same one.
export class Filter {
  private shown = new Map<Kind, Set<string>>(); // kinds that are missing here are shown whole

  constructor(s: Store, find: string) {
    const orders = new Map<string, string>();
    for (const kind of Object.keys(tables) as (keyof typeof tables)[]) {
      const ids = new Set<string>();
      for (const e of s.all[kind].values()) {
        let words = [e.id, ...tables[kind].columns.map((c) => c.text(e as never, s))].join("\n").toLowerCase();
        if (kind === "order") orders.set(e.id, words);
        // A drone and its mission are found by what they carry.
        const mission = kind === "drone" ? s.all.mission.get(s.all.drone.get(e.id)!.currentMissionId ?? "") : kind === "mission" ? e as Mission : undefined;
        for (const id of mission?.orderIds ?? []) words += "\n" + (orders.get(id) ?? "");
        if (words.includes(find)) ids.add(e.id);
      }
      this.shown.set(kind, ids);
    }
  }

  matches(kind: Kind, id: string): boolean { return this.shown.get(kind)?.has(id) ?? true; }
}
