import { useEffect, useRef } from "preact/hooks";
import type { Props } from "./app";
import { around, eventText, last, type Replay } from "./replay";
import { clock } from "./words";

const minute = 60e3; // ms

// TimeBar chooses the time that is shown: now, or one of an interval of the past, which it plays.
export function TimeBar({ p }: Props) {
  const then = useRef<HTMLInputElement>(null), now = p.live.now(), r = p.replay;
  const recall = () => {
    const at = Date.parse(then.current!.value);
    if (isNaN(at)) then.current!.focus(); else void p.recall(at, around(at, now));
  };
  const recent = (length: number) => { const span = last(length, now); void p.recall(span.from, span); };
  return <section id="replay" aria-label="Time">
    <div class="times">
      <button id="live" type="button" aria-pressed={!p.model.past} onClick={() => p.present()}>Live</button>
      <button type="button" id="quarter" title="Replay the last 15 minutes" onClick={() => recent(15 * minute)}>Last 15 min</button>
      <button type="button" id="hour" title="Replay the last hour" onClick={() => recent(60 * minute)}>Last hour</button>
      <label>Past <input id="then" ref={then} type="datetime-local" step="1" /></label>
      <button id="go" type="button" onClick={recall}>Show</button>
      {r?.loading && <label role="status">Reading <progress value={r.read} max={r.pieces}>{`${r.read} of ${r.pieces}`}</progress></label>}
    </div>
    {r && p.model.past && <Player key={r.span.from} p={p} r={r} />}
  </section>;
}

const speeds = [1, 10, 60];

// Player plays an interval. Space plays and pauses, the slider's arrows go from moment to moment, and
// with Shift from event to event.
function Player({ p, r }: Props & { r: Replay }) {
  const { from, to } = r.span, share = (at: number) => `${(100 * (at - from)) / (to - from)}%`, latest = r.latest;
  const go = (by: 1 | -1) => { const t = r.event(by); if (t) p.seek(t.at); };
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key !== " " || (e.target as Element).closest("button, input:not([type=range]), select, summary, a, dialog")) return;
      e.preventDefault();
      r.play(!r.playing);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [r]);
  const arrow = (e: KeyboardEvent) => {
    const by = e.key === "ArrowLeft" ? -1 : e.key === "ArrowRight" ? 1 : 0;
    if (!by) return;
    e.preventDefault();
    if (e.shiftKey) go(by); else { r.move(by); p.seek(r.at); }
  };
  return <>
    <div class="times">
      <button type="button" title="Event before (Shift and left arrow)" disabled={!r.event(-1)} onClick={() => go(-1)}>‹ Event</button>
      <button id="play" type="button" aria-pressed={r.playing} onClick={() => r.play(!r.playing)}>{r.playing ? "Pause" : "Play"}</button>
      <button type="button" title="Next event (Shift and right arrow)" disabled={!r.event(1)} onClick={() => go(1)}>Event ›</button>
      <span role="group" aria-label="Speed">{speeds.map((n) => <button key={n} type="button" aria-pressed={r.speed === n} onClick={() => { r.speed = n; p.refresh(); }}>{n}×</button>)}</span>
      <output id="moment" for="when">{clock(r.at)}</output>
    </div>
    <div class="bar-of-time">
      <input id="when" type="range" aria-label="Time" min={from} max={to} step={1000} value={r.at} aria-valuetext={clock(r.at)} onInput={(e) => p.seek(Number(e.currentTarget.value))} onKeyDown={arrow} />
      <div id="ticks">{r.ticks.map((t) => {
        const text = `${clock(t.at)} ${eventText(r.store, t)}`;
        return <button key={`${t.kind} ${t.entity.id} ${t.at}`} type="button" class={`tick ${t.kind}`} tabIndex={t === latest ? 0 : -1} style={{ left: share(t.at) }} title={text} aria-label={text} onClick={() => { p.seek(t.at); p.select(t.entity); }} />;
      })}</div>
    </div>
    <p id="event" class="note" dir="auto">{latest ? `${clock(latest.at)} ${eventText(r.store, latest)}` : r.loading ? "" : "No event until here."}</p>
    {!r.loading && r.begins >= from + r.span.step && <p class="note">Nothing is kept from before {clock(r.begins)}.</p>}
    {r.missing && <p class="note" dir="auto">A part cannot be shown: {r.missing}</p>}
  </>;
}
