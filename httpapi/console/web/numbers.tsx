import type { Props } from "./app";
import { open, time } from "./store";
import type { Order } from "./types";
import { plain, span } from "./words";

const priorities = ["CRITICAL", "HIGH", "STANDARD"];

// Numbers shows how the last hour went, as far as this page has seen it. An order that is
// late, or will be, is not on time although nobody has delivered it yet.
export function Numbers({ p }: Props) {
  const now = p.store.now(), orders = [...p.store.all.order.values()], done = orders.filter((o) => o.status === "DELIVERED");
  const present = new Set(orders.map((o) => o.priority ?? "")), others = [...present].filter((name) => name && !priorities.includes(name));
  return <div class="numbers">
    <table>
      <caption>The last hour, by priority</caption>
      <thead><tr>{["Priority", "On time", "Delivered", "Median time", "Open", "Will be late"].map((name) => <th scope="col">{name}</th>)}</tr></thead>
      <tbody>{[...priorities.filter((name) => present.has(name)), ...others].map((name) => {
        const mine = done.filter((o) => o.priority === name), waits = mine.map((o) => time(o.deliveredAt) - time(o.createdAt)).sort((a, b) => a - b);
        const waiting = orders.filter((o) => open(o) && o.priority === name), late = waiting.filter((o) => p.store.slack(o) < 0).length, due = mine.length + late;
        return <tr key={name}>
          <th scope="row">{plain(name)}</th>
          <td>{due > 0 && `${Math.floor((100 * mine.filter((o) => !o.late).length) / due)} %`}</td>
          <td>{mine.length}</td>
          <td>{span(waits[waits.length >> 1] ?? NaN)}</td>
          <td>{waiting.length}</td>
          <td>{late}</td>
        </tr>;
      })}</tbody>
    </table>
    <Plot title="Deliveries in each five minutes of the last hour" values={perFiveMinutes(done, now)} />
    <Plot title="Drones in flight in the last 15 minutes, while this page was open" values={p.history.get("flying") ?? []} />
  </div>;
}

function perFiveMinutes(done: Order[], now: number): number[] {
  const counts = new Array<number>(12).fill(0);
  for (const o of done) {
    const i = 11 - Math.floor((now - time(o.deliveredAt)) / 300e3);
    if (i >= 0 && i < 12) counts[i]++;
  }
  return counts;
}

// Plot draws bars, the newest at the right.
function Plot({ title, values }: { title: string; values: number[] }) {
  const most = Math.max(0, ...values), scale = Math.max(1, most), w = 360 / Math.max(12, values.length);
  return <figure>
    <figcaption>{title}: now {values.at(-1) ?? 0}, at most {most}</figcaption>
    <svg viewBox="0 0 360 60" aria-hidden="true" preserveAspectRatio="none">
      {values.map((v, i) => <rect x={360 - w * (values.length - i)} y={60 - (56 * v) / scale} width={Math.max(0.8, w * 0.9)} height={(56 * v) / scale} class="value" />)}
    </svg>
  </figure>;
}
