// Grid is a table that is read, not worked.
export function Grid({ caption, columns, rows }: { caption: string; columns: string[]; rows: string[][] }) {
  return <div class="scroll">
    <table class="fixed">
      <caption>{caption}</caption>
      <thead><tr>{columns.map((name) => <th scope="col">{name}</th>)}</tr></thead>
      <tbody>{rows.map((row) => <tr>{row.map((text) => <td dir="auto">{text}</td>)}</tr>)}</tbody>
    </table>
  </div>;
}
