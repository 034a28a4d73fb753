import type { Props } from "./app";
import { counts } from "./counts";
import { open } from "./store";
import { clock, span } from "./words";

const states = { connecting: "Connecting", live: "Live", lost: "Connection lost: what you see is old. Trying again", refused: "The State Manager does not answer, or refuses this browser. Trying again" };

// Header says how old the picture is, whatever happens to the connection, and who looks at it.
export function Header({ p }: Props) {
  const m = p.model, stream = p.stream;
  const state = m.past ? `Past: the fleet as it was at ${clock(m.past.now())}` :
    stream.state === "live" && stream.delay > 0 ? `The State Manager has had no answer from its store for ${span(stream.delay)}` : states[stream.state];
  const signOut = () => { fetch("/signout", { method: "POST" }).then(() => location.reload(), () => p.say("Not signed out: the State Manager does not answer.")); };
  return <header>
    <h1>DroneFleet</h1>
    <p id="state" role="status">{state}</p>
    <p id="age">{p.live.all.drone.size || stream.state === "live" ? `heard ${span(performance.now() - stream.heard)} ago` : ""}</p>
    <p id="clock" title="The State Manager's time">{clock(p.live.now())}</p>
    <label class="find">Find <input id="find" type="search" maxLength={128} autocomplete="off" spellcheck={false} value={m.find} onInput={(e) => p.narrow(m.only, e.currentTarget.value)} /></label>
    <FilterNote p={p} />
    <AreasNote p={p} />
    <p id="said" role="status">{m.said}</p>
    <p id="who">{m.who?.name}</p>
    <a id="signin" href="/signin" hidden={!m.mustSignIn}>Sign in</a>
    <button id="signout" type="button" hidden={m.who?.method !== "session"} onClick={signOut}>Sign out</button>
    <button id="sound" type="button" aria-pressed={m.sound} onClick={() => m.set({ sound: !m.sound })}>Sound</button>
    <button id="theme" type="button" onClick={() => p.theme(p.dark ? "light" : "dark")}>Theme</button>
  </header>;
}

// AreasNote says that the page has only a part of the fleet, and which one.
function AreasNote({ p }: Props) {
  const { areas } = p.stream;
  if (!areas || p.model.past) return null;
  return <p id="areas" role="status" title={areas.join(", ")}>Only what belongs to {areas.length} of {p.live.all.depot.size} depots: those near the map</p>;
}

// FilterNote says what the page is narrowed to, and how much of the fleet is left.
function FilterNote({ p }: Props) {
  const { find, only } = p.model, filter = p.filter, all = p.store.all;
  if (!filter) return null;
  const what = [...counts.filter((c) => only.includes(c.id)).map((c) => c.name.toLowerCase()), ...(find.trim() ? [`“${find.trim()}”`] : [])];
  const orders = [...all.order.values()].filter(open).length;
  return <p id="filter" role="status">Only {what.join(", ")}: {filter.count("order")} of {orders} orders, {filter.count("drone")} of {all.drone.size} drones
    <button type="button" aria-label="Show all" onClick={() => p.narrow([], "")}>×</button></p>;
}
