import type { TargetedEvent } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Props } from "./app";
import { openView, save, savedViews } from "./savedviews";

// Saved keeps what the page shows under a name, and shows it again.
export function Saved({ p }: Props) {
  const box = useRef<HTMLDialogElement>(null), name = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => { box.current!.showModal(); }, []);
  const keep = (e: TargetedEvent) => {
    e.preventDefault();
    save(name.current!.value.trim(), p.model.address());
    p.say(`Saved ${name.current!.value.trim()}`);
    box.current!.close();
  };
  const views = savedViews();
  return <dialog ref={box} aria-labelledby="saved-name" onClose={() => p.model.set({ pane: "" })}>
    <h2 id="saved-name">Saved views</h2>
    <p class="note">{views.length ? "In this browser." : "None yet. A view has what is shown, found, sorted and selected."}</p>
    <ul id="saved-views">{views.map((v) => <li key={v.name}>
      <button type="button" class="row" dir="auto" onClick={() => { box.current!.close(); openView(v); }}>{v.name}</button>
      <button type="button" aria-label={`Forget ${v.name}`} onClick={() => { save(v.name, null); p.refresh(); }}>×</button>
    </li>)}</ul>
    <form onSubmit={keep}>
      <label>Save what is shown as<input ref={name} required maxLength={60} pattern=".*\S.*" autocomplete="off" /></label>
      <div class="buttons"><button type="button" onClick={() => box.current!.close()}>Close</button><button type="submit" class="primary">Save</button></div>
    </form>
  </dialog>;
}
