// Small helpers. Text of the fleet reaches the page only as text.

export function byId<T extends Element = HTMLElement>(id: string): T {
  return document.getElementById(id) as unknown as T;
}

export function el<K extends keyof HTMLElementTagNameMap>(tag: K, text = "", attributes: Record<string, string> = {}): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

export function svg(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, String(value));
  e.textContent = text;
  return e;
}

export function button(text: string, act: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const b = el("button", text, { type: "button", ...attributes });
  b.addEventListener("click", act);
  return b;
}

// set changes a text only if it differs, so that a reader's place in it is kept.
export function set(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}

// setIds shows ids, one a line. Long ones are cut before their end, which tells them apart;
// a title has them whole.
export function setIds(e: HTMLElement, text: string): void {
  if (e.dataset.ids === text) return;
  e.dataset.ids = e.title = text;
  e.replaceChildren(...text.split("\n").map((id) => {
    const letters = [...id], tail = letters.length > 16 ? 9 : 0, line = el("span", "", { class: "id" });
    line.append(el("span", letters.slice(0, letters.length - tail).join("")));
    if (tail) line.append(el("span", letters.slice(-tail).join("")));
    return line;
  }));
}

// span is a length of time, such as "4 min" or "−35 s"; "" for none.
export function span(ms: number): string {
  if (isNaN(ms)) return "";
  const sign = ms < 0 ? "−" : "", s = Math.floor(Math.abs(ms) / 1000);
  if (s < 120) return `${sign}${s}\u00a0s`;
  if (s < 7200) return `${sign}${Math.floor(s / 60)}\u00a0min`;
  return `${sign}${Math.floor(s / 3600)}\u00a0h`;
}

// clock is a moment as a time of day, with its date if that is another day; "" for none.
export function clock(ms: number): string {
  if (isNaN(ms)) return "";
  const at = new Date(ms), day = at.toDateString() === new Date().toDateString() ? "" : at.toLocaleDateString() + " ";
  return day + at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

// plain is a name of the API in words: AT_RISK reads "at risk".
export function plain(name: string): string { return name.toLowerCase().replaceAll("_", " "); }

// grid is a table that is read, not worked.
export function grid(caption: string, columns: string[], rows: string[][]): HTMLElement {
  const table = el("table", "", { class: "fixed" }), thead = el("thead"), head = el("tr"), body = el("tbody");
  table.append(el("caption", caption));
  for (const name of columns) head.append(el("th", name, { scope: "col" }));
  thead.append(head);
  for (const row of rows) {
    const tr = el("tr");
    for (const text of row) tr.append(el("td", text, { dir: "auto" }));
    body.append(tr);
  }
  table.append(thead, body);
  const scroller = el("div", "", { class: "scroll" });
  scroller.append(table);
  return scroller;
}
