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
  // One more field: of values, a time, or a text with suggestions.
  choice?: { name: string; label: string; values?: string[]; suggest?: string[]; value: string };
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
      const drones = [...s.all.drone.keys()].sort(), forbidden = o.forbiddenDroneIds ?? [];
      const drone = (suggest: string[], value = "") => ({ name: "droneId", label: "Drone", suggest, value });
      if (o.pinnedDroneId) add("Unpin", "unpin", `Drones other than ${o.pinnedDroneId} may take it again.`);
      add("Pin", "pin", "Only this drone takes it.", drone(drones.filter((id) => !forbidden.includes(id)), o.assignedDroneId));
      add("Forbid", "forbid", "This drone does not take it.", drone(drones.filter((id) => !forbidden.includes(id))));
      if (forbidden.length) add("Allow", "allow", "This drone may take it again.", { name: "droneId", label: "Drone", values: forbidden, value: forbidden[0] });
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
    for (const value of v.choice.values) choice.append(el("option", v.choice.name === "droneId" ? value : plain(value), { value }));
    choice.value = v.choice.value;
  } else if (v.choice?.suggest) {
    choice = el("input", "", { type: "text", list: "suggested", required: "", maxlength: "128", autocomplete: "off", spellcheck: "false" });
    choice.value = v.choice.value;
    const list = el("datalist", "", { id: "suggested" });
    for (const value of v.choice.suggest) list.append(el("option", "", { value }));
    form.append(list);
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
    if (choice) body[v.choice!.name] = v.choice!.values || v.choice!.suggest ? choice.value.trim() : new Date(choice.value).toISOString();
    send.disabled = true;
    wrong.textContent = "";
    ask(v.path, body).then(() => { box.close(); done(`${v.name}: done`); },
      (err: Error) => { wrong.textContent = err.message; }).finally(() => { send.disabled = false; });
  });
  document.body.append(box);
  box.showModal();
  (choice ?? reason).focus();
}
