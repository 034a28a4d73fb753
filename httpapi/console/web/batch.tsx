import type { TargetedEvent } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Props } from "./app";
import { name, said } from "./names";
import type { Page } from "./page";
import { ask } from "./session";
import type { Key } from "./types";
import { acknowledge, verbsFor, type Verb } from "./verbs";

// Batch is a verb of many, with one reason for all.
export interface Batch { name: string; list: { k: Key; text: string; verb: Verb }[] }

const verbs = ["Hold", "Release", "Ground"]; // beside Acknowledge

// batches are what can be done to some of the entities, as they are now.
export function batches(p: Page, keys: Key[]): Batch[] {
  const s = p.store, may = p.model.past ? [] : p.model.who?.verbs ?? [];
  if (!may.length) return [];
  const each = keys.map((k) => ({ k, list: verbsFor(s, k, may) }));
  const all: Batch[] = verbs.map((verb) => ({ name: verb, list: each.flatMap(({ k, list }) => list.filter((v) => v.name === verb && !v.off).map((v) => ({ k, text: name(s, k), verb: v }))) }));
  const wanted = new Set(keys.map((k) => `${k.kind} ${k.id}`)), alerts = [...s.all.alert.values()].filter((a) => !a.acknowledged && (wanted.has(`alert ${a.id}`) || wanted.has(`${a.entity.kind} ${a.entity.id}`)));
  if (may.includes("alerts acknowledge")) all.push({ name: "Acknowledge", list: alerts.map((a) => ({ k: wanted.has(`alert ${a.id}`) ? { kind: "alert", id: a.id } : a.entity, text: said(s, a), verb: acknowledge(a) })) });
  return all.filter((b) => b.list.length);
}

// BatchBar offers what can be done to the marked rows.
export function BatchBar({ p }: Props) {
  const marked = p.model.marked;
  if (!marked.length) return null;
  return <section id="batch" aria-label="Marked rows">
    <p role="status">{marked.length} marked</p>
    {batches(p, marked).map((b) => <button key={b.name} type="button" onClick={() => p.model.set({ batch: b })}>{b.name} {b.list.length}</button>)}
    <button type="button" onClick={() => p.model.set({ marked: [] })}>Clear marks</button>
  </section>;
}

// AcknowledgeAll takes note of every alert that is shown.
export function AcknowledgeAll({ p }: Props) {
  const keys: Key[] = [...p.live.all.alert.keys()].filter((id) => p.filter?.matches("alert", id) ?? true).map((id) => ({ kind: "alert", id }));
  const all = batches(p, keys).find((b) => b.name === "Acknowledge");
  return all && all.list.length > 1 ? <p class="note"><button type="button" onClick={() => p.model.set({ batch: all })}>Acknowledge all {all.list.length}</button></p> : null;
}

// BatchDialog asks for one reason and sends a command for each entity. Each has its own answer; what is refused
// stays marked and can be tried again.
export function BatchDialog({ p, b }: Props & { b: Batch }) {
  const box = useRef<HTMLDialogElement>(null), reason = useRef<HTMLInputElement>(null);
  const [results, setResults] = useState<string[]>([]), [sending, setSending] = useState(false); // "" is done
  useLayoutEffect(() => { box.current!.showModal(); reason.current!.focus(); }, []);
  const done = results.filter((r) => r === "").length, refused = results.filter(Boolean).length, all = b.list.length;
  const send = async (e: TargetedEvent) => {
    e.preventDefault();
    setSending(true);
    const answers = [...results];
    for (const [i, { k, verb }] of b.list.entries()) {
      if (answers[i] === "") continue;
      try {
        await ask(verb.path, { ...verb.fields, reason: reason.current!.value });
        answers[i] = "";
        p.mark([k], false);
      } catch (err) {
        answers[i] = (err as Error).message;
        p.mark([k], k.kind !== "alert");
      }
      setResults([...answers]);
    }
    setSending(false);
    const failed = answers.filter(Boolean).length;
    p.say(`${b.name}: ${all - failed} of ${all} done${failed ? `, ${failed} refused` : ""}`);
    if (!failed) box.current?.close();
  };
  return <dialog ref={box} aria-labelledby="batch-name" onClose={() => { if (p.model.batch === b) p.model.set({ batch: null }); }} onCancel={(e) => { if (sending) e.preventDefault(); }}>
    <form onSubmit={(e) => void send(e)}>
      <h2 id="batch-name">{b.name}: {all}</h2>
      <ul class="results" tabIndex={0} aria-label="What it is done to">{b.list.map(({ k, text, verb }, i) => <li key={`${k.kind} ${k.id} ${verb.fields?.id}`} dir="auto" title={k.id}>
        {text}{results[i] === "" ? <b class="done"> done</b> : results[i] && <span class="wrong"> refused: {results[i]}</span>}
      </li>)}</ul>
      <p>{b.list[0].verb.says}</p>
      <label>One reason for all, for the audit<input ref={reason} required maxLength={200} autocomplete="off" /></label>
      <p role="status">{results.length > 0 && `${done} of ${all} done${refused ? `, ${refused} refused` : ""}.`}</p>
      <div class="buttons">
        <button type="button" disabled={sending} onClick={() => box.current!.close()}>{results.length ? "Close" : "Cancel"}</button>
        <button type="submit" class="primary" disabled={sending}>{refused && !sending ? `Try ${refused} again` : `${b.name} ${all}`}</button>
      </div>
    </form>
  </dialog>;
}
