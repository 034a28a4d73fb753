// Small helpers of what Preact does not draw.

export function byId<T extends Element = HTMLElement>(id: string): T {
  return document.getElementById(id) as unknown as T;
}

// set changes a text only if it differs, so that a reader's place in it is kept.
export function set(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
