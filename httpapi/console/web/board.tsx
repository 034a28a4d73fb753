import { useRef } from "preact/hooks";
import type { Props } from "./app";
import { batches } from "./batch";
import { drag } from "./drag";
import { Cut, name, Refs } from "./names";
import { sorted, tables, type Table } from "./tables";
import type { Key } from "./types";

const most = 200; // rows; more make a page slow, and nobody reads them

type BoardProps = Props & { kind: keyof typeof tables; caption: string };

// Board is the table of one kind of entities. Its columns sort it, and its rows can be marked: by their
// boxes, with Ctrl or Shift and the mouse, or with X and Shift and the arrow keys.
export function Board({ p, kind, caption }: BoardProps) {
  const t = tables[kind] as Table<{ id: string }>, s = p.store, m = p.model, body = useRef<HTMLTableSectionElement>(null), anchor = useRef("");
  const every = t.rows(s), all = sorted(t, every.filter((row) => p.filter?.matches(kind, row.id) ?? true), m.sorts[kind] ?? 0, s), shown = all.slice(0, most);
  const hidden = every.length - all.length, filtered = hidden ? ` The filter hides ${hidden}.` : "";
  const marking = batches(p, shown.map((e) => ({ kind, id: e.id }))).length > 0 || m.marked.length > 0;
  const keys = (ids: string[]): Key[] => ids.map((id) => ({ kind, id })), marked = new Set(m.marked.filter((k) => k.kind === kind).map((k) => k.id));
  const toggle = (id: string) => { anchor.current = id; p.mark(keys([id]), !marked.has(id)); };
  const range = (id: string) => {
    const at = (id: string) => shown.findIndex((e) => e.id === id), from = Math.max(0, at(anchor.current)), to = at(id);
    p.mark(keys(shown.slice(Math.min(from, to), Math.max(from, to) + 1).map((e) => e.id)), true);
  };
  // press marks rows, or does what a plain press does.
  const press = (e: MouseEvent, id: string, plain: () => void) => {
    if (marking && e.shiftKey) range(id); else if (marking && (e.ctrlKey || e.metaKey)) toggle(id); else { anchor.current = id; plain(); }
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const rows = [...body.current!.querySelectorAll<HTMLElement>("button.row")], at = rows.indexOf(e.target as HTMLElement), step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0, to = rows[at + step];
    if (at < 0 || e.ctrlKey || e.metaKey) return;
    if (e.key === "x" && marking) toggle(rows[at].title);
    else if (step && to) {
      if (e.shiftKey && marking) p.mark(keys([rows[at].title, to.title]), true);
      to.focus();
    } else return;
    e.preventDefault();
  };
  const row = (e: { id: string }) => {
    const on = m.selected?.kind === kind && m.selected.id === e.id, act = () => p.select({ kind, id: e.id }), is = marked.has(e.id);
    const cells = t.columns.map((c) => c.refs ? <Refs p={p} list={c.refs(e)} /> : <Cut text={c.text(e, s)} />);
    return <tr key={e.id} class={t.tone?.(e, s)} data-selected={on ? "" : undefined} data-marked={is ? "" : undefined} {...(kind === "order" ? drag(p, e.id) : {})}
      onClick={(event) => { if (!(event.target as Element).closest("button, input")) press(event, e.id, act); }}>
      {marking && <td class="mark-row"><input type="checkbox" tabIndex={-1} aria-label={`Mark ${name(s, { kind, id: e.id })}`} checked={is}
        onClick={(event) => { if (event.shiftKey) range(e.id); else toggle(e.id); }} /></td>}
      <th scope="row"><button type="button" class="row" dir="auto" title={e.id} aria-pressed={on} onClick={(event) => press(event, e.id, act)}>{cells[0]}</button></th>
      {cells.slice(1).map((cell) => <td dir="auto">{cell}</td>)}
    </tr>;
  };
  const head = (name: string) => <tr key={`section ${name}`} class="section">
    <th scope="colgroup" colSpan={t.columns.length + Number(marking)}>{name}: {all.filter((e) => t.section!(e) === name).length}</th>
  </tr>;
  return <div>
    <div class="scroll">
      <table>
        <caption>{caption}{marking && <span class="hint">. X or a box marks a row, Shift marks more</span>}</caption>
        <thead><tr>{marking && <td class="mark-row" />}{t.columns.map((c, i) => <Head p={p} kind={kind} name={c.name} column={i + 1} />)}</tr></thead>
        <tbody ref={body} onKeyDown={onKeyDown}>{shown.flatMap((e, i) => t.section && (i === 0 || t.section(e) !== t.section(shown[i - 1])) ? [head(t.section(e)), row(e)] : [row(e)])}</tbody>
      </table>
    </div>
    <p class="note">{all.length > most ? `The first ${most} of ${all.length}. Use Find to see others.` : all.length ? `${all.length} in all.` : p.nothing("None.")}{filtered}</p>
  </div>;
}

// Head sorts by its column: the smallest first, the largest first, and as at the start.
function Head({ p, kind, name, column }: Props & { kind: string; name: string; column: number }) {
  const { [kind]: now = 0, ...others } = p.model.sorts, up = now === column, down = now === -column;
  const sorts = down ? others : { ...others, [kind]: up ? -column : column };
  return <th scope="col" aria-sort={up ? "ascending" : down ? "descending" : undefined}>
    <button type="button" class="sort" onClick={() => p.model.set({ sorts })}>{name}{up ? " ▲" : down ? " ▼" : ""}</button>
  </th>;
}
