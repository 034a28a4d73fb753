import type { Props } from "./app";
import { sheets } from "./model";

// Sheet raises and lowers the tables of a page that is too narrow for columns.
export function Sheet({ p }: Props) {
  const at = sheets.indexOf(p.model.sheet), to = (i: number) => p.model.set({ sheet: sheets[i] });
  return <div id="grip" role="group" aria-label="Height of the tables">
    <button type="button" aria-label="Raise the tables" aria-disabled={at === 2 || undefined} onClick={() => to(Math.min(2, at + 1))}>▲</button>
    <button type="button" aria-label="Lower the tables" aria-disabled={at === 0 || undefined} onClick={() => to(Math.max(0, at - 1))}>▼</button>
  </div>;
}
