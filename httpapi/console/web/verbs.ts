import { button, el, plain } from "./dom";
import { ask, pathOf } from "./session";
import { open, time, type Store } from "./store";
import type { Alert, Key } from "./types";

// Verb is something that an operator may do.
export interface Verb {
  name: string;
  about: string; // what it is done to
  path: string;
  says: string; // what it does
  fields?: Record<string, string>; // of the request, beside the reason
  choice?: { name: string; label: string; values?: string[]; value: string }; // one more field: of values, or a time
}

// verbsFor lists what somebody may do to an entity as it is.
export function verbsFor(s: Store, k: Key, may: string[]): Verb[] {
  const about = `${k.kind} ${k.id}`, list: Verb[] = [];
  const add = (name: string, command: string, says: string, choice?: Verb["choice"]) => may.includes(`${k.kind}s ${command}`) && list.push({ name, about, path: pathOf(k.kind, k.id, command), says, choice });
  if (k.kind === "drone") {
    const d = s.all.drone.get(k.id);
    if (d && !d.grounded) add("Ground", "ground", "It gets no mission until it is released. A mission that it flies goes on.");
    if (d?.grounded) add("Release", "release", "It gets missions again.");
    if (d?.emergencyLatched) add("Clear emergency", "clear", "It gets missions again once it reports that it is well.");
  } else if (k.kind === "order") {
    const o = s.all.order.get(k.id);
    if (o && open(o)) {
      add("Priority", "priority", "The next cycle plans with it.", { name: "priority", label: "Priority", values: ["CRITICAL", "HIGH", "STANDARD"], value: o.priority ?? "STANDARD" });
      add("Deadline", "deadline", "The next cycle plans with it.", { name: "deadline", label: "Deadline", value: o.deadline ?? "" });
    }
    if (o?.status === "PENDING") {
      if (o.held) add("Release", "release", "It is planned again."); else add("Hold", "hold", "It is not planned until it is released.");
      add("Cancel order", "cancel", "It is not delivered. This cannot be undone.");
    }
  } else if (k.kind === "mission" && s.all.mission.get(k.id)?.status === "ACTIVE") {
    add("Recall", "recall", "What is not aboard waits for another drone. The drone delivers what is aboard or is revoked.");
  }
  return list;
}

export function acknowledge(a: Alert): Verb {
  return { name: "Acknowledge", about: a.text, path: "alerts/acknowledge", says: "It stays listed, and is no longer announced.", fields: { id: a.id } };
}

// confirm asks for a reason and sends a command. What the server refuses is shown in its
// words, and can be corrected.
export function confirm(v: Verb, done: (said: string) => void): void {
  const box = el("dialog", "", { "aria-labelledby": "verb" }), form = el("form"), wrong = el("p", "", { role: "alert", class: "wrong", dir: "auto" });
  const reason = el("input", "", { required: "", maxlength: "200", autocomplete: "off" }), send = el("button", v.name, { type: "submit", class: "primary" });
  const labelled = (text: string, field: HTMLElement) => { const l = el("label", text); l.append(field); return l; };
  form.append(el("h2", `${v.name}: ${v.about}`, { id: "verb", dir: "auto" }), el("p", v.says));
  let choice: HTMLInputElement | HTMLSelectElement | undefined;
  if (v.choice?.values) {
    choice = el("select");
    for (const value of v.choice.values) choice.append(el("option", plain(value), { value }));
    choice.value = v.choice.value;
  } else if (v.choice) {
    choice = el("input", "", { type: "datetime-local", step: "1", required: "" });
    const at = time(v.choice.value);
    if (!isNaN(at)) choice.value = new Date(at - new Date(at).getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
  }
  if (choice) form.append(labelled(v.choice!.label, choice));
  const buttons = el("div", "", { class: "buttons" });
  buttons.append(button("Cancel", () => box.close()), send);
  form.append(labelled("Reason, for the audit", reason), wrong, buttons);
  box.append(form);
  box.addEventListener("close", () => box.remove());
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const body: Record<string, string> = { ...v.fields, reason: reason.value };
    if (choice) body[v.choice!.name] = v.choice!.values ? choice.value : new Date(choice.value).toISOString();
    send.disabled = true;
    wrong.textContent = "";
    ask(v.path, body).then(() => { box.close(); done(`${v.name}: done`); },
      (err: Error) => { wrong.textContent = err.message; }).finally(() => { send.disabled = false; });
  });
  document.body.append(box);
  box.showModal();
  (choice ?? reason).focus();
}
