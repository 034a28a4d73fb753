// Views that a person keeps under a name, in this browser.

export interface SavedView { name: string; address: string } // the part after #

const key = "views";

export function savedViews(): SavedView[] {
  try { return (JSON.parse(localStorage.getItem(key) ?? "[]") as SavedView[]).filter((v) => typeof v.name === "string" && typeof v.address === "string"); } catch { return []; }
}

// save keeps a view; one of the same name is replaced. No address forgets it.
export function save(name: string, address: string | null): void {
  const others = savedViews().filter((v) => v.name !== name);
  localStorage.setItem(key, JSON.stringify(address === null ? others : [...others, { name, address }]));
}

// openView shows a saved view: Back leaves it.
export function openView(v: SavedView): void { location.hash = v.address; }
