import type { Props } from "./app";
import type { Store } from "./store";
import { urgent } from "./tables";
import type { Alert } from "./types";

export function unacknowledged(s: Store): Alert[] { return [...s.all.alert.values()].filter((a) => !a.acknowledged); }

// Critical announces CRITICAL alerts, also to screen readers.
export function Critical({ p }: Props) {
  const alerts = unacknowledged(p.live).filter(urgent);
  return <p id="critical" role="alert">{alerts.length > 1 ? `${alerts[0].text}; ${alerts.length} CRITICAL alerts in all` : alerts[0]?.text}</p>;
}
