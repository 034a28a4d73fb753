import { button, byId, clock, el, plain, set, span } from "./dom";
import { FleetMap, looks } from "./map";
import { Replay } from "./replay";
import { ask, session, type Session } from "./session";
import { stamp } from "./sprites";
import { plannedBy, standing, Store, time } from "./store";
import { StoryView, told } from "./story";
import { Stream } from "./stream";
import { fence, notServed, refused, TableView, urgent } from "./tables";
import type { Drone, Key, Place, Upsert } from "./types";
import { acknowledge, confirm, verbsFor, type Verb } from "./verbs";
import { details, Numbers, TimeLine } from "./views";

const store = new Store(), replay = new Replay(), numbers = new Numbers(), timeLine = new TimeLine((k) => select(k)), story = new StoryView();
let shown = store; // or a store of the past
let changed = true;
const stream = new Stream(store, () => { changed = true; if (!map.past) map.redraw(); });
const map = new FleetMap(store, select);
const panel = byId("panel");

// Views: each is a table, with a picture above it where that helps.
const table = (kind: ConstructorParameters<typeof TableView>[0], caption: string) => new TableView(kind, caption, select);
const views: { name: string; table?: TableView; picture?: { root: HTMLElement; update(s: Store): void }; count?: () => number; past?: true }[] = [
  { name: "Orders", table: table("order", "Open orders, those with the least time left first"), past: true },
  { name: "Drones", table: table("drone", "Drones, those in trouble first"), past: true },
  { name: "Missions", table: table("mission", "Missions, active ones first"), past: true },
  { name: "Alerts", table: table("alert", "Alerts"), count: () => [...store.all.alert.values()].filter((a) => !a.acknowledged).length },
  { name: "Cycles", table: table("cycle", "Cycles, newest first"), picture: timeLine, past: true },
  { name: "Numbers", picture: numbers },
  { name: "Story", picture: { root: story.root, update: () => story.update(map.selected) }, past: true },
];
let view = views[0];
for (const v of views) byId("tabs").append(button(v.name, () => show(v)));

function show(v: (typeof views)[number]): void {
  view = v;
  [...byId("tabs").children].forEach((b, i) => views[i] === v ? b.setAttribute("aria-current", "page") : b.removeAttribute("aria-current"));
  panel.replaceChildren(...[v.picture?.root, v.table?.root].filter((e) => e !== undefined));
  panel.setAttribute("aria-label", v.name);
  panel.scrollTop = 0;
  refresh();
}

function select(k: Key | null): void {
  if (k?.kind === "alert") k = shown.all.alert.get(k.id)?.entity ?? k;
  map.selected = k;
  const p = k && placeOf(k);
  if (p && document.activeElement !== map.canvas) map.show(p);
  follow(map.following && k?.kind === "drone");
  refresh();
  map.redraw();
}

function placeOf(k: Key): Place | undefined {
  switch (k.kind) {
    case "drone": return shown.marks.get(k.id);
    case "order": return shown.all.order.get(k.id)?.deliveryLocation;
    case "mission": { const m = shown.all.mission.get(k.id); return m && shown.marks.get(m.droneId); }
    case "depot": return shown.all.depot.get(k.id)?.position;
    case "warehouse": return shown.all.warehouse.get(k.id)?.position;
  }
}

function facts(k: Key): [string, string][] {
  const o = shown.all.order.get(k.id), d = shown.all.drone.get(k.id), m = shown.all.mission.get(k.id);
  if (k.kind === "order" && o) {
    return [["Status", plain(o.status)], ["Priority", plain(o.priority ?? "")], ["Product", o.productType ?? ""], ["Deadline", clock(time(o.deadline))],
      ["ETA", clock(shown.eta(o))], ["Slack", span(shown.slack(o))], ["Drone", o.assignedDroneId ?? ""], ["Held", o.heldReason ?? ""],
      ["Pinned to", o.pinnedDroneId ?? ""], ["Forbidden to", (o.forbiddenDroneIds ?? []).join(", ")],
      ["Planned by", plannedBy(o)], ["Handed over by", shown.handOvers(o).join("; ")],
      ["Waits for", (o.waiting ?? []).map((w) => `${w.depotId ?? ""} ${plain(w.reason)}`.trim()).join("; ")]];
  }
  if (k.kind === "drone" && d) {
    const mark = shown.marks.get(d.id);
    return [["Status", plain(d.status)], ["Battery", mark ? `${Math.round(mark.battery)} %` : ""], ["Last report", mark ? `${span(Math.max(0, shown.now() - mark.at))} ago` : "never heard of"],
      ["Mission", d.currentMissionId ?? ""], ["Grounded", d.grounded ? d.groundedReason || "yes" : ""], ["Flies failed mission", d.ghostMissionId ?? ""], ["Link lost", d.linkLostAt ? `since ${clock(time(d.linkLostAt))}` : ""], ...registry(d)];
  }
  if (k.kind === "mission" && m) {
    return [["Status", plain(m.status)], ["Drone", m.droneId], ["Stops", `${m.reachedStops} of ${m.route.length}`], ["Orders", m.orderIds.join(", ")]];
  }
  const c = shown.all.cycle.get(k.id), house = shown.all.depot.get(k.id) ?? shown.all.warehouse.get(k.id);
  if (k.kind === "cycle" && c) {
    return [["Depot", c.depotId], ["Began", clock(time(c.startedAt))], ["Outcome", plain(c.outcome)], ["Detail", c.detail ?? ""], ["Lock held by", c.holder ?? ""],
      ["Fence", fence(c)], ["Read", `${c.readMs} ms: ${c.drones} drones, ${c.orders} orders`], ["Solve", `${c.solveMs} ms`],
      ["Publish", `${c.publishMs} ms: ${c.missions} missions, ${c.assigned} orders`], ["Decisions", `${c.applied} applied`], ["Refused", refused(c)], ["Not served", notServed(c)],
      ["Handed over", c.handedOver ? `${c.handedOver} orders` : ""]];
  }
  if (house && (k.kind === "depot" || k.kind === "warehouse")) return [["Name", house.name ?? ""], ["Position", `${house.position.lat}, ${house.position.lon}`]];
  return [["State", "not in the live view"]];
}

// registry is what operators said of a drone, and what is due next.
function registry(d: Drone): [string, string][] {
  const number = (n: number | undefined, unit: string) => n ? `${n} ${unit}` : "";
  const registered = d.registeredAt ? `${d.registeredAt.slice(0, 10)}${d.registeredBy ? ` by ${d.registeredBy}` : ""}` : "";
  const serial = d.reportedSerial && d.reportedSerial !== d.serialNumber ? `${d.serialNumber ?? ""}, reports ${d.reportedSerial}` : d.serialNumber ?? "";
  return [["Registered", standing(d) || registered], ["Home", d.homeDepotId ?? ""], ["Type", d.typeId ?? ""], ["Serial number", serial],
    ["Payload", number(d.payloadCapacityKg, "kg")], ["Flight time", number(d.maxFlightTimeMinutes, "min")],
    ["Cold box", d.coldBox ? `${d.coldBox.minCelsius} to ${d.coldBox.maxCelsius} °C` : d.registeredAt ? "none" : ""],
    ["Flown", d.flightSeconds ? `${(d.flightSeconds / 3600).toFixed(1)} h, ${d.landings ?? 0} landings` : ""],
    ["Battery health", d.batteryHealth === undefined ? "" : `${Math.round(d.batteryHealth)} %`],
    ["Due next", (d.nextDue ?? []).map((n) => `${n.item}: ${[n.at?.slice(0, 10), number(n.flightHours, "flight hours"), number(n.landings, "landings")].filter(Boolean).join(" or ") || "no more"}`).join("; ")]];
}

// refresh brings everything but the map up to date.
function refresh(): void {
  view.picture?.update(shown);
  view.table?.update(shown, map.selected);
  [...byId("tabs").children].forEach((b, i) => {
    const n = views[i].count?.() ?? 0;
    set(b, n ? `${views[i].name} ${n}` : views[i].name);
  });
  const k = map.selected, box = byId("selected");
  box.hidden = !k;
  if (k) {
    details(box, `${k.kind} ${k.id}`, facts(k));
    actions(box, k);
  }
  announce();
}

// actions are the buttons below the selection. They stay while they are the same, so that
// focus does.
function actions(box: HTMLElement, k: Key): void {
  const verbs: Verb[] = who && shown === store ? verbsFor(shown, k, who.verbs) : [];
  const alerts = [...shown.all.alert.values()].filter((a) => a.entity.kind === k.kind && a.entity.id === k.id);
  const same = JSON.stringify([k, verbs, alerts, who, shown === store]);
  let bar = box.querySelector<HTMLElement>(".actions");
  if (bar?.dataset.same === same) return;
  bar?.remove();
  bar = el("div", "", { class: "actions", "data-same": same });
  for (const a of alerts) {
    bar.append(el("p", a.text + (a.acknowledged ? ` (acknowledged by ${a.acknowledged.by}: ${a.acknowledged.reason})` : ""), { class: urgent(a) && !a.acknowledged ? "wrong" : "note", dir: "auto" }));
    if (who?.verbs.includes("alerts acknowledge") && shown === store && !a.acknowledged) bar.append(button("Acknowledge", () => confirm(acknowledge(a), say)));
  }
  if (told.includes(k.kind)) bar.append(button("Story", () => show(views.find((v) => v.name === "Story")!)));
  for (const v of verbs) bar.append(button(v.name, () => confirm(v, say)));
  box.append(bar);
}

function say(text: string): void { set(byId("said"), text); }

// identify asks who is signed in: at the start, when the connection is refused, and often
// enough for the session to be renewed.
let who: Session | null = null;
async function identify(): Promise<void> {
  const { status, who: now } = await session();
  if (status) who = now;
  set(byId("who"), who?.name ?? "");
  byId("signin").hidden = status !== 401;
  byId("signout").hidden = who?.method !== "session";
  changed = true;
}

// announce says CRITICAL alerts to a screen reader, each once, and sounds if asked to.
const said = new Set<string>();
let sound: AudioContext | null = null;
function announce(): void {
  const alerts = [...store.all.alert.values()].filter((a) => urgent(a) && !a.acknowledged), news = alerts.filter((a) => !said.has(a.id));
  set(byId("critical"), alerts.length === 0 ? "" : alerts.length === 1 ? alerts[0].text : `${(news[0] ?? alerts[0]).text}; ${alerts.length} CRITICAL alerts in all`);
  said.clear();
  alerts.forEach((a) => said.add(a.id));
  if (!news.length || !sound) return;
  const tone = sound.createOscillator(), gain = sound.createGain();
  gain.gain.value = 0.1;
  tone.connect(gain).connect(sound.destination);
  tone.start();
  tone.stop(sound.currentTime + 0.4);
}

const states = { connecting: "Connecting", live: "Live", lost: "Connection lost: what you see is old. Trying again", refused: "The State Manager does not answer, or refuses this browser. Trying again" };

// tell says how old the picture is, whatever happens to the connection.
function tell(): void {
  const state = byId("state"), age = performance.now() - stream.heard;
  document.documentElement.dataset.state = stream.state === "live" && stream.delay > 0 ? "lost" : stream.state;
  set(state, shown !== store ? `Past: the fleet as it was at ${clock(shown.now())}` : map.past ? "Past: this is a replay" : stream.state === "live" && stream.delay > 0 ? `The State Manager has had no answer from its store for ${span(stream.delay)}` : states[stream.state]);
  set(byId("age"), store.all.drone.size || stream.state === "live" ? `heard ${span(age)} ago` : "");
}

// Replay: the slider chooses a frame; the tables, which know only the present, step aside.
const when = byId<HTMLInputElement>("when"), then = byId<HTMLInputElement>("then");
function rewind(): void {
  shown = map.store = store;
  const frame = replay.frames[Number(when.value)];
  map.past = frame && Number(when.value) < replay.frames.length - 1 ? frame : null;
  set(byId("moment"), map.past ? clock(map.past.at) : "");
  panel.inert = byId("selected").inert = map.past !== null;
  marked();
}

// marked shows whether this is the past, and which views know it.
function marked(): void {
  const past = map.past ? "places" : shown !== store ? "all" : "";
  if (past) document.documentElement.dataset.past = past; else delete document.documentElement.dataset.past;
  byId("live").setAttribute("aria-pressed", String(!past));
  [...byId("tabs").children].forEach((b, i) => { (b as HTMLButtonElement).disabled = past === "all" && !views[i].past; });
  if (past === "all" && !view.past) show(views[0]);
  tell();
  refresh();
  map.redraw();
}

// recall shows the fleet as Firestore recorded it at a moment.
async function recall(): Promise<void> {
  if (!then.value) { then.focus(); return; }
  say("Reading the past…");
  try {
    const answer = await ask<{ readTime: string; entities: Upsert[] }>("snapshot?at=" + encodeURIComponent(new Date(then.value).toISOString()));
    when.value = when.max;
    rewind();
    shown = map.store = new Store(Date.parse(answer.readTime));
    answer.entities.forEach((u) => shown.upsert(u));
    say("");
    marked();
  } catch (err) {
    say((err as Error).message);
  }
}
function remember(): void {
  const at = map.past?.at;
  replay.remember(store);
  when.disabled = replay.frames.length < 2;
  when.max = String(Math.max(1, replay.frames.length - 1));
  // The slider stays at its moment while frames come and go.
  when.value = at === undefined ? when.max : String(Math.max(0, replay.frames.findIndex((f) => f.at >= at)));
}

function follow(on: boolean): void {
  map.following = on;
  byId("follow").setAttribute("aria-pressed", String(on));
  map.redraw();
}

function theme(to: string): void {
  document.documentElement.dataset.theme = to;
  map.restyle();
  legend();
}

function legend(): void {
  byId("shapes").replaceChildren(...Object.entries(looks).map(([status, [shape, colour]]) => {
    const item = el("li"), c = el("canvas", "", { width: "18", height: "18", "aria-hidden": "true" }), g = c.getContext("2d")!;
    stamp(g, shape, getComputedStyle(document.documentElement).getPropertyValue("--" + colour), 9, 9, 0);
    item.append(c, plain(status));
    return item;
  }));
}

byId("in").addEventListener("click", () => map.zoom(1.5));
byId("out").addEventListener("click", () => map.zoom(1 / 1.5));
byId("fit").addEventListener("click", () => map.fit());
byId("follow").addEventListener("click", () => follow(!map.following));
byId("deselect").addEventListener("click", () => { select(null); map.canvas.focus(); });
byId("live").addEventListener("click", () => { when.value = when.max; rewind(); });
when.addEventListener("input", rewind);
byId("go").addEventListener("click", () => void recall());
byId("sound").addEventListener("click", () => {
  sound = sound ? (void sound.close(), null) : new AudioContext();
  byId("sound").setAttribute("aria-pressed", String(sound !== null));
});
byId("signout").addEventListener("click", () => {
  fetch("/signout", { method: "POST" }).then(() => location.reload(), () => say("Not signed out: the State Manager does not answer."));
});
byId("theme").addEventListener("click", () => {
  const to = getComputedStyle(document.documentElement).colorScheme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", to);
  theme(to);
});
byId("find").addEventListener("input", () => {
  const find = byId<HTMLInputElement>("find").value.trim().toLowerCase();
  map.shows = find === "" ? null : (id) => id.toLowerCase().includes(find) || plain(store.all.drone.get(id)?.status ?? store.all.order.get(id)?.status ?? "").includes(find);
  map.redraw();
  refresh();
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !(e.target instanceof HTMLInputElement)) { e.preventDefault(); byId("find").focus(); }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { map.restyle(); legend(); });

theme(localStorage.getItem("theme") ?? "");
show(view);
setInterval(() => {
  tell();
  if (!map.past) map.redraw(); // drones pale as their reports age
  if (changed) { changed = false; refresh(); }
}, 1000);
void identify();
setInterval(() => void identify(), 20 * 60e3);
setInterval(() => { if (stream.state === "refused") void identify(); remember(); numbers.sample(store); }, 5000);

// For tests and measurements from outside.
Object.assign(window, { fleet: { store, map, stream, select, theme, remember } });
