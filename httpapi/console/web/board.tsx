import type { Props } from "./app";
import { drag } from "./drag";
import { Cut, Refs } from "./names";
import { tables, type Table } from "./tables";

const most = 200; // rows; more make a page slow, and nobody reads them

// Board is the table of one kind of entities.
export function Board({ p, kind, caption }: Props & { kind: keyof typeof tables; caption: string }) {
  const t = tables[kind] as Table<{ id: string }>, s = p.store, selected = p.model.selected;
  const every = t.rows(s), all = every.filter((row) => p.filter?.matches(kind, row.id) ?? true), shown = all.slice(0, most);
  const hidden = every.length - all.length, filtered = hidden ? ` The filter hides ${hidden}.` : "";
  const row = (e: { id: string }) => {
    const on = selected?.kind === kind && selected.id === e.id, act = () => p.select({ kind, id: e.id });
    const cells = t.columns.map((c) => c.refs ? <Refs p={p} list={c.refs(e)} /> : <Cut text={c.text(e, s)} />);
    return <tr key={e.id} class={t.tone?.(e, s)} data-selected={on ? "" : undefined} {...(kind === "order" ? drag(p, e.id) : {})} onClick={(event) => { if (!(event.target as Element).closest("button")) act(); }}>
      <th scope="row"><button type="button" class="row" dir="auto" title={e.id} aria-pressed={on} onClick={act}>{cells[0]}</button></th>
      {cells.slice(1).map((cell) => <td dir="auto">{cell}</td>)}
    </tr>;
  };
  const head = (name: string) => <tr key={`section ${name}`} class="section">
    <th scope="colgroup" colSpan={t.columns.length}>{name}: {all.filter((e) => t.section!(e) === name).length}</th>
  </tr>;
  return <div>
    <div class="scroll">
      <table>
        <caption>{caption}</caption>
        <thead><tr>{t.columns.map((c) => <th key={c.name} scope="col">{c.name}</th>)}</tr></thead>
        <tbody>{shown.flatMap((e, i) => t.section && (i === 0 || t.section(e) !== t.section(shown[i - 1])) ? [head(t.section(e)), row(e)] : [row(e)])}</tbody>
      </table>
    </div>
    <p class="note">{all.length > most ? `The first ${most} of ${all.length}. Use Find to see others.` : all.length ? `${all.length} in all.` : "None."}{filtered}</p>
  </div>;
}
