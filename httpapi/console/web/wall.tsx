import { troubles } from "./alerts";
import type { Props } from "./app";
import { counts, numberOf } from "./counts";
import { said } from "./names";
import { tables } from "./tables";

const most = 12; // lines; as many as fit are seen

// WallNumbers are the counts for people who stand across the room. Nothing on the wall is pressed.
export function WallNumbers({ p }: Props) {
  return <section id="numbers" aria-label="The fleet in numbers"><ul>
    {counts.map((c) => {
      const n = numberOf(c, p.store);
      return <li key={c.id} class={n ? c.tone : undefined}><b>{n}</b> {c.name}</li>;
    })}
  </ul></section>;
}

// WallWorst lists what needs somebody: alerts that nobody has acknowledged, then the orders with the least slack.
export function WallWorst({ p }: Props) {
  const alerts = troubles(p.store).filter((t) => !t.alert.acknowledged), t = tables.order, s = p.store;
  const orders = t.rows(s).sort((a, b) => s.slack(a) - s.slack(b)).slice(0, Math.max(0, most - alerts.length));
  return <section id="wall" aria-label="The worst first">
    <ul>
      {alerts.slice(0, most).map(({ alert }) => <li key={alert.id} class={alert.urgent ? "bad" : "warn"} dir="auto">{said(p.store, alert)}</li>)}
      {orders.map((o) => <li key={o.id} class={t.tone!(o, s)} dir="auto">{["Slack", "Priority", "Order", "Status"].map((name) => t.columns.find((c) => c.name === name)!.text(o, s)).join(" · ")}</li>)}
    </ul>
    <p class="note">Escape ends the wall mode.</p>
  </section>;
}
