import type { Props } from "./app";
import { counts, numberOf, oldestReport } from "./counts";
import { span } from "./words";

// Strip shows the fleet in numbers, each with its last 15 minutes. Pressed, a number narrows
// the page to what it counts.
export function Strip({ p }: Props) {
  const m = p.model, s = p.store, oldest = oldestReport(s);
  const toggle = (id: string) => p.narrow(m.only.includes(id) ? m.only.filter((o) => o !== id) : [...m.only, id]);
  return <section id="strip" aria-label="The fleet in numbers"><ul>
    {counts.map((c) => {
      const n = numberOf(c, s);
      return <li key={c.id}>
        <button type="button" data-count={c.id} aria-pressed={m.only.includes(c.id)} class={n ? c.tone : undefined} onClick={() => toggle(c.id)}>
          <b>{p.knows ? n : "–"}</b> {c.name}<Line values={p.history.get(c.id) ?? []} />
        </button>
      </li>;
    })}
    <li class="oldest"><b>{isNaN(oldest) ? "–" : span(Math.max(0, s.now() - oldest))}</b> oldest report</li>
  </ul></section>;
}

// Line is how a number went.
function Line({ values }: { values: number[] }) {
  const most = Math.max(1, ...values), points = values.map((v, i) => `${60 - (values.length - 1 - i)},${13 - (12 * v) / most}`).join(" ");
  return <svg viewBox="0 0 60 14" aria-hidden="true"><polyline points={points} /></svg>;
}
