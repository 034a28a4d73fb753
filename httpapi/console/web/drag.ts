import type { Page } from "./page";

const kind = "application/x-dronefleet-order"; // what is dragged

// drag lets an order be dragged to a drone, by those who may pin it.
export function drag(p: Page, order: string) {
  return { draggable: p.may("orders pin"), onDragStart: (e: DragEvent) => e.dataTransfer!.setData(kind, order) };
}

// drop lets orders be dropped on a drone, and asks before it pins one.
export function drop(p: Page, drone: (e: DragEvent) => string | undefined) {
  return {
    onDragOver: (e: DragEvent) => { if (e.dataTransfer!.types.includes(kind) && drone(e)) e.preventDefault(); },
    onDrop: (e: DragEvent) => {
      const order = e.dataTransfer!.getData(kind), to = drone(e);
      if (!order || !to) return;
      e.preventDefault();
      p.pin(order, to);
    },
  };
}
