import { useLayoutEffect, useRef } from "preact/hooks";
import type { Props } from "./app";
import { FleetMap, looks } from "./map";
import { Places } from "./places";
import { stamp, type Shape } from "./sprites";
import { plain } from "./words";

// MapView is the map with its tools, its legend and the operator's places.
export function MapView({ p }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null), drones = useRef<HTMLCanvasElement>(null), scale = useRef<HTMLDivElement>(null), length = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    p.map = new FleetMap({ canvas: canvas.current!, drones: drones.current!, scale: scale.current!, length: length.current! }, p);
  }, []);
  return <section id="map" aria-label="Map">
    <canvas id="canvas" ref={canvas} tabIndex={0} role="img" aria-label="Map of the fleet. The tables hold the same. Arrow keys move it, plus and minus zoom, 0 shows all. Enter selects a place where drones stand, then the next." />
    <canvas id="drones" ref={drones} aria-hidden="true" />
    <div class="tools">
      <button id="in" type="button" aria-label="Zoom in" onClick={() => p.map.zoom(1.5)}>+</button>
      <button id="out" type="button" aria-label="Zoom out" onClick={() => p.map.zoom(1 / 1.5)}>−</button>
      <button id="fit" type="button" onClick={() => p.map.fit()}>All</button>
      <button id="follow" type="button" aria-pressed={p.model.following} onClick={() => p.follow(!p.model.following)}>Follow</button>
    </div>
    <div id="scale" ref={scale}><span id="length" ref={length} /></div>
    <p id="attribution" dir="auto" />
    <details id="legend">
      <summary>Legend</summary>
      <ul id="shapes">{Object.entries(looks).map(([status, [shape, colour]]) => <li key={status}><Sign shape={shape} colour={colour} dark={p.dark} />{plain(status)}</li>)}</ul>
    </details>
    <Places p={p} />
  </section>;
}

// Sign is a drone's shape as the map draws it.
function Sign({ shape, colour, dark }: { shape: Shape; colour: string; dark: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const g = canvas.current!.getContext("2d")!;
    g.clearRect(0, 0, 18, 18);
    stamp(g, shape, getComputedStyle(document.documentElement).getPropertyValue("--" + colour), 9, 9, 0);
  }, [dark]);
  return <canvas ref={canvas} width={18} height={18} aria-hidden="true" />;
}
