import { time, type Store } from "./store";
import type { Alert } from "./types";

// Trouble is an alert with those that it explains.
export interface Trouble { alert: Alert; effects: Alert[] }

const deepest = 5; // causes of causes

// troubles are the alerts: those that nobody has acknowledged first, of them the worst first,
// and each below its cause.
export function troubles(s: Store): Trouble[] {
  const all = [...s.all.alert.values()].sort((a, b) => Number(!!a.acknowledged) - Number(!!b.acknowledged) || a.rank - b.rank || Number(!!a.cause) - Number(!!b.cause) || (a.id < b.id ? -1 : 1));
  const groups = new Map<string, Trouble>();
  for (const a of all) {
    let root = a;
    for (let i = 0, c = causeOf(s, a); i < deepest && c; i++, c = causeOf(s, c)) root = c;
    const group = groups.get(root.id) ?? { alert: root, effects: [] };
    groups.set(root.id, group);
    if (a !== root) group.effects.push(a);
  }
  return [...groups.values()];
}

// causeOf is the alert that explains another one. Who has acknowledged a cause has not heard of
// what it did later.
function causeOf(s: Store, a: Alert): Alert | undefined {
  const cause = s.all.alert.get(a.cause ?? "");
  return cause?.acknowledged && !a.acknowledged && !(time(a.since) > 0 && time(a.since) <= time(cause.acknowledged.at)) ? undefined : cause;
}

// worst is the first alert that nobody has acknowledged and that cannot wait.
export function worst(s: Store): Trouble | undefined { return troubles(s).find((t) => !t.alert.acknowledged && t.alert.urgent); }
