import { render } from "preact";
import { App } from "./app";
import { byId } from "./dom";
import { Page } from "./page";

const page = new Page(draw);

// draw draws all components. A browser drops the focus of what is moved, such as the row of
// an order that has less time left than others.
function draw(): void {
  const focus = document.activeElement as HTMLElement | null;
  render(<App p={page} />, byId("app"));
  if (focus?.isConnected && document.activeElement === document.body) focus.focus({ preventScroll: true });
}

draw();
page.start();
document.addEventListener("keydown", (e) => {
  if (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !document.querySelector("dialog")) { e.preventDefault(); page.model.set({ pane: "palette" }); }
  if (e.key === "/" && !(e.target instanceof HTMLInputElement)) { e.preventDefault(); byId("find").focus(); }
  if (e.key === "Escape" && page.model.wall) page.model.set({ wall: false });
});

// For tests and measurements from outside.
Object.assign(window, { fleet: page });
