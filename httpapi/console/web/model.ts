import type { Batch } from "./batch";
import { counts } from "./counts";
import type { Span } from "./replay";
import type { Session } from "./session";
import type { Store } from "./store";
import type { Key, Kind } from "./types";
import type { Verb } from "./verbs";

export const views = ["Orders", "Timeline", "Drones", "Missions", "Alerts", "Cycles", "Numbers", "Story", "Handover", "Incidents"] as const;
export type ViewName = (typeof views)[number];
export type Theme = "" | "light" | "dark"; // "" follows the browser

export const sheets = ["down", "half", "full"] as const;
export type Sheet = (typeof sheets)[number];

// Centre is the middle of the map, and the pixels of a degree of longitude.
export interface Centre { lat: number; lon: number; scale: number }

type Patch = Partial<Omit<Model, "set" | "address" | "restore">>;

// Model is what the page shows of the fleet, and how. The address and the history of the
// browser follow it, so that a page can be sent to somebody and Back works.
export class Model {
  view: ViewName = "Orders";
  selected: Key | null = null;
  ahead = 60; // minutes that the timeline shows of what is to come
  sheet: Sheet = "half"; // how much of a narrow page the tables take
  since = NaN; // of the hand-over, in Unix ms
  sorts: Record<string, number> = {}; // of a table: its column from 1, negative for the largest first
  marked: Key[] = []; // for verbs of many
  batch: Batch | null = null; // asked about in a dialog
  pane: "" | "palette" | "saved" = ""; // a dialog that commands nothing
  wall = false; // for a screen that a room looks at
  following = false; // the selection stays in the middle of the map
  find = "";
  only: string[] = []; // ids of counts
  past: Store | null = null; // the fleet at a past moment
  span: Span | null = null; // of the replay
  moment = NaN; // of the past, as the address has it, in Unix ms
  centre: Centre | null = null; // of the map, if somebody moved it
  theme: Theme = "";
  sound = localStorage.getItem("sound") === "on";
  why = false; // the story was opened to ask why
  verb: Verb | null = null; // asked about in the dialog
  said = ""; // what became of the last command
  who: Session | null = null;
  mustSignIn = false;
  restoring = false; // what an address says: no step of the history
  private known = ""; // the last address

  constructor(private changed: () => void) {
    this.theme = (localStorage.getItem("theme") ?? "") as Theme;
  }

  // set changes some of it and shows the page anew. What a person may want to come back to is
  // a step of the history.
  set(patch: Patch): void {
    const step = !this.restoring && ["view", "selected", "past", "wall"].some((name) => name in patch);
    Object.assign(this, patch);
    if (patch.sound !== undefined) localStorage.setItem("sound", patch.sound ? "on" : "off");
    if (patch.theme !== undefined) localStorage.setItem("theme", patch.theme);
    const address = this.address();
    if (address !== this.known) {
      this.known = address;
      history[step ? "pushState" : "replaceState"](null, "", location.pathname + location.search + address);
    }
    this.changed();
  }

  // address is the part of the page's address after #, which no server sees; "" at the start.
  address(): string {
    const q = new URLSearchParams();
    if (this.view !== "Orders") q.set("view", this.view);
    if (this.selected) q.set(this.selected.kind, this.selected.id);
    if (this.find) q.set("find", this.find);
    if (this.only.length) q.set("only", this.only.join());
    if (this.sheet !== "half") q.set("sheet", this.sheet);
    const sorts = Object.entries(this.sorts).map(([kind, column]) => `${kind}:${column}`);
    if (sorts.length) q.set("sort", sorts.join());
    if (!isNaN(this.since)) q.set("since", new Date(this.since).toISOString());
    if (this.wall) q.set("wall", "");
    if (this.following) q.set("follow", "");
    if (this.centre) q.set("map", [this.centre.lat.toFixed(4), this.centre.lon.toFixed(4), Math.round(this.centre.scale)].join());
    if (this.ahead !== 60) q.set("ahead", String(this.ahead));
    if (this.why) q.set("why", "");
    if (this.past && this.span) {
      q.set("at", new Date(this.moment).toISOString());
      q.set("span", [this.span.from, this.span.to].map((at) => new Date(at).toISOString()).join());
    }
    const text = q.toString();
    return text && "#" + text;
  }

  // restore takes over what an address says, except for the past moment in Unix ms and its
  // interval, if it says one, which it returns: they have to be asked for.
  restore(address: string): { at: number; within: [number, number] | null } | null {
    const q = new URLSearchParams(address.slice(1)), kind = kinds.find((k) => q.has(k)), at = Date.parse(q.get("at") ?? "");
    this.known = address;
    this.restoring = true;
    this.view = views.find((v) => v === q.get("view")) ?? "Orders";
    this.selected = kind ? { kind, id: q.get(kind)! } : null;
    this.find = q.get("find") ?? "";
    this.only = (q.get("only") ?? "").split(",").filter((id) => counts.some((c) => c.id === id));
    this.sheet = sheets.find((s) => s === q.get("sheet")) ?? "half";
    this.sorts = Object.fromEntries([...(q.get("sort") ?? "").matchAll(/(\w+):(-?\d+)/g)].map(([, kind, column]) => [kind, Number(column)]));
    this.since = Date.parse(q.get("since") ?? "");
    this.wall = q.has("wall");
    this.following = q.has("follow");
    this.why = q.has("why");
    this.ahead = Math.min(240, Math.max(15, Number(q.get("ahead")) || 60));
    const [lat, lon, scale] = (q.get("map") ?? "").split(",").map(Number);
    this.centre = lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180 && scale > 0 ? { lat, lon, scale } : null;
    const [from, to] = (q.get("span") ?? "").split(",").map((text) => Date.parse(text));
    return isNaN(at) ? null : { at, within: from <= at && at <= to && to - from <= longest ? [from, to] : null };
  }
}

const longest = 2 * 3600e3; // ms

const kinds: Kind[] = ["drone", "order", "mission", "cycle", "depot", "warehouse", "alert"];
