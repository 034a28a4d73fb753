import type { Props } from "./app";
import { tables, type Table } from "./tables";

const most = 200; // rows; more make a page slow, and nobody reads them

// Board is the table of one kind of entities.
export function Board({ p, kind, caption }: Props & { kind: keyof typeof tables; caption: string }) {
  const { columns, rows, tone } = tables[kind] as Table<{ id: string }>, s = p.store, selected = p.model.selected;
  const all = rows(s).filter((row) => p.filter?.matches(kind, row.id) ?? true);
  return <div>
    <div class="scroll">
      <table>
        <caption>{caption}</caption>
        <thead><tr>{columns.map((c) => <th key={c.name} scope="col">{c.name}</th>)}</tr></thead>
        <tbody>
          {all.slice(0, most).map((row) => {
            const on = selected?.kind === kind && selected.id === row.id, act = () => p.select({ kind, id: row.id });
            const cells = columns.map((c) => { const text = c.text(row, s); return c.ids ? <Ids text={text} /> : text; });
            return <tr key={row.id} class={tone?.(row, s)} data-selected={on ? "" : undefined} onClick={(e) => { if (!(e.target as Element).closest("button")) act(); }}>
              <th scope="row"><button type="button" class="row" dir="auto" aria-pressed={on} onClick={act}>{cells[0]}</button></th>
              {cells.slice(1).map((cell) => <td dir="auto">{cell}</td>)}
            </tr>;
          })}
        </tbody>
      </table>
    </div>
    <p class="note">{all.length > most ? `The first ${most} of ${all.length}. Use Find to see others.` : all.length ? `${all.length} in all.` : p.filter ? "Nothing matches." : "None."}</p>
  </div>;
}

// Ids are one a line. Long ones are cut before their end, which tells them apart; a title has
// them whole.
function Ids({ text }: { text: string }) {
  return <span title={text}>{text.split("\n").map((id) => {
    const letters = [...id], tail = letters.length > 16 ? 9 : 0;
    return <span class="id"><span>{letters.slice(0, letters.length - tail).join("")}</span>{tail > 0 && <span>{letters.slice(-tail).join("")}</span>}</span>;
  })}</span>;
}
