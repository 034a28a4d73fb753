import type { ComponentChildren } from "preact";

// Grid is a table that is read, not worked.
export function Grid({ caption, columns, rows }: { caption: string; columns: string[]; rows: ComponentChildren[][] }) {
  return <div class="scroll">
    <table class="fixed">
      <caption>{caption}</caption>
      <thead><tr>{columns.map((name) => <th scope="col">{name}</th>)}</tr></thead>
      <tbody>{rows.map((row) => <tr>{row.map((cell) => <td dir="auto">{cell}</td>)}</tr>)}</tbody>
    </table>
  </div>;
}
