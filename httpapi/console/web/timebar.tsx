import { useRef } from "preact/hooks";
import type { Props } from "./app";
import { clock } from "./words";

// TimeBar chooses the moment that is shown: now, a frame of the replay, or one that the
// server recalls.
export function TimeBar({ p }: Props) {
  const then = useRef<HTMLInputElement>(null), { frame, past } = p.model, frames = p.replay.frames, last = Math.max(1, frames.length - 1);
  const recall = () => { if (then.current!.value) void p.recall(Date.parse(then.current!.value)); else then.current!.focus(); };
  return <div id="replay">
    <button id="live" type="button" aria-pressed={!frame && !past} onClick={() => p.rewind(frames.length)}>Live</button>
    <label>Time <input id="when" type="range" min="0" max={last} disabled={frames.length < 2} value={frame ? Math.max(0, frames.indexOf(frame)) : last}
      onInput={(e) => p.rewind(Number(e.currentTarget.value))} /></label>
    <output id="moment" for="when">{frame && clock(frame.at)}</output>
    <label>Past <input id="then" ref={then} type="datetime-local" step="1" /></label>
    <button id="go" type="button" onClick={recall}>Show</button>
  </div>;
}
