import type { Store } from "./store";
import type { Alert } from "./types";

// Trouble is an alert with those that it explains.
export interface Trouble { alert: Alert; effects: Alert[] }

// troubles are the alerts: those that nobody has acknowledged first, of them the worst first,
// and each below its cause.
export function troubles(s: Store): Trouble[] {
  const all = [...s.all.alert.values()].sort((a, b) => Number(!!a.acknowledged) - Number(!!b.acknowledged) || a.rank - b.rank || (a.id < b.id ? -1 : 1));
  const causes = new Map(all.filter((a) => !s.all.alert.has(a.cause ?? "")).map((a): [string, Trouble] => [a.id, { alert: a, effects: [] }]));
  for (const a of all) causes.get(a.cause ?? "")?.effects.push(a);
  return [...causes.values()];
}

// worst is the first alert that nobody has acknowledged and that cannot wait.
export function worst(s: Store): Trouble | undefined { return troubles(s).find((t) => !t.alert.acknowledged && t.alert.urgent); }
