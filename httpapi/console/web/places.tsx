import type { Props } from "./app";
import type { Known } from "./overlay";

const most = 500; // names; nobody reads more

// Places lists what the operator's file adds to the map. Pressed, a name is shown.
export function Places({ p }: Props) {
  const overlay = p.map?.below.overlay;
  if (!overlay) return null;
  const named = overlay.named;
  const press = (s: Known) => {
    overlay.choose(overlay.chosen === s ? null : s);
    if (overlay.chosen) p.map.show(s.middle);
    p.refresh();
  };
  return <details id="places">
    <summary>{overlay.failed ? `Places cannot be loaded: ${overlay.failed}` : `Places ${named.length}`}</summary>
    <ul>{named.slice(0, most).map((s, i) => <li key={i}>
      <button type="button" class="row" dir="auto" aria-pressed={overlay.chosen === s} onClick={() => press(s)}>{s.name}</button>
      {s.kind && <span class="note" dir="auto">{s.kind}</span>}
    </li>)}</ul>
    {named.length > most && <p class="note">The first {most} of {named.length}.</p>}
  </details>;
}
