import type { RefObject, TargetedEvent } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Props } from "./app";
import { Candidates } from "./candidates";
import { ask } from "./session";
import { time } from "./store";
import type { Verb } from "./verbs";
import { local, plain } from "./words";

// Dialog asks for a reason and sends a command. What the server refuses is shown in its
// words, and can be corrected.
export function Dialog({ p, v }: Props & { v: Verb }) {
  const box = useRef<HTMLDialogElement>(null), reason = useRef<HTMLInputElement>(null), choice = useRef<HTMLInputElement & HTMLSelectElement>(null);
  const [wrong, setWrong] = useState(""), [sending, setSending] = useState(false), [drone, setDrone] = useState(v.choice?.value ?? ""), [previewed, setPreviewed] = useState("");
  const pick = (id: string) => { choice.current!.value = id; setDrone(id); };
  useLayoutEffect(() => {
    box.current!.showModal();
    (choice.current ?? reason.current!).focus();
  }, []);
  const send = (e: TargetedEvent) => {
    e.preventDefault();
    const body: Record<string, string> = { ...v.fields, reason: reason.current!.value };
    if (v.choice) {
      const value = choice.current!.value.trim();
      if (v.order && value !== previewed) { setDrone(value); return; } // it was typed just now
      body[v.choice.name] = v.choice.values || v.choice.suggest ? value : new Date(value).toISOString();
    }
    setSending(true);
    setWrong("");
    ask(v.path, body).then(() => { box.current!.close(); p.say(`${v.name}: ${v.said ?? "done"}`); }, (err: Error) => { setWrong(err.message); setSending(false); });
  };
  return <dialog ref={box} class={v.order && "wide"} aria-labelledby="verb" onClose={() => { if (p.model.verb === v) p.model.set({ verb: null }); }}>
    <form onSubmit={send}>
      <h2 id="verb" dir="auto">{v.name}: {v.about}</h2>
      <p>{v.says}</p>
      {v.choice && <label>{v.choice.label}{field(v.choice, choice, v.order ? setDrone : undefined)}</label>}
      {v.order && <Candidates p={p} order={v.order} drone={drone} pick={pick} ready={setPreviewed} />}
      <label>Reason, for the audit<input ref={reason} required maxLength={200} autocomplete="off" /></label>
      <p role="alert" class="wrong" dir="auto">{wrong}</p>
      <div class="buttons">
        <button type="button" onClick={() => box.current!.close()}>Cancel</button>
        <button type="submit" class="primary" disabled={sending || (v.order !== undefined && drone !== previewed)}>{v.name}</button>
      </div>
    </form>
  </dialog>;
}

function field(c: NonNullable<Verb["choice"]>, ref: RefObject<HTMLInputElement & HTMLSelectElement>, chosen?: (value: string) => void) {
  if (c.values) return <select ref={ref}>{c.values.map((value) => <option value={value} selected={value === c.value}>{c.name === "droneId" ? value : plain(value)}</option>)}</select>;
  if (!c.suggest) return <input ref={ref} type="datetime-local" step="1" required defaultValue={local(time(c.value))} />;
  return <>
    <input ref={ref} type="text" list="suggested" required maxLength={128} autocomplete="off" spellcheck={false} defaultValue={c.value} onChange={(e) => chosen?.(e.currentTarget.value.trim())} />
    <datalist id="suggested">{c.suggest.map((value) => <option value={value} />)}</datalist>
  </>;
}
