import type { Page } from "./page";

const kind = "application/x-dronefleet-order"; // what is dragged

// drag lets an order be dragged to a drone, by those who may pin it.
export function drag(p: Page, order: string) {
  return { draggable: p.may("orders pin"), onDragStart: (e: DragEvent) => e.dataTransfer!.setData(kind, order) };
}

// drop lets orders be dropped on a drone, and asks before it pins one.
export function drop(p: Page, drone: (e: DragEvent) => string | undefined) {
  const over = (e: DragEvent, on: boolean) => { (e.currentTarget as HTMLElement).toggleAttribute("data-over", on); };
  return {
    onDragOver: (e: DragEvent) => {
      const takes = e.dataTransfer!.types.includes(kind) && drone(e) !== undefined;
      if (takes) e.preventDefault();
      over(e, takes);
    },
    onDragLeave: (e: DragEvent) => over(e, false),
    onDrop: (e: DragEvent) => {
      over(e, false);
      const order = e.dataTransfer!.getData(kind), to = drone(e);
      if (!order || !to) return;
      e.preventDefault();
      p.pin(order, to);
    },
  };
}
