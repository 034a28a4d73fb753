import { name } from "./names";
import { open, stopText, time, type Store } from "./store";
import type { Key, Mission } from "./types";
import { clock, plain, span } from "./words";

// Event is a change that the audit has recorded.
export interface Event {
  time: string; entity: string; id: string; revision: number; from?: string; to: string; cause: string; reason?: string; by?: string;
  droneId?: string; orderId?: string; missionId?: string; state?: State;
}
export interface Decision { outcome: string; reason?: string; detail?: string; droneId: string; orderIds: string[]; appliedAt?: string }
type State = Record<string, unknown>;

export interface Told { at: number; text: string }

// telling says in a dispatcher's words what events and refused decisions mean, oldest first. What is only
// bookkeeping is left out.
export function telling(s: Store, events: Event[], decisions: Decision[], mission?: Mission): Told[] {
  const before = new Map<string, State>(), told: Told[] = [];
  for (const e of events) {
    const key = `${e.entity} ${e.id}`, text = sentence(s, e, before.get(key) ?? (e.from ? undefined : {}), mission);
    if (e.revision > 0) before.set(key, e.state ?? {});
    if (text) told.push({ at: time(e.time), text });
  }
  for (const d of decisions) if (d.outcome === "REJECTED") {
    const orders = d.orderIds.map((id) => name(s, { kind: "order", id })).join(", ");
    told.push({ at: time(d.appliedAt), text: `The plan for ${name(s, { kind: "drone", id: d.droneId })}${orders && ` to bring ${orders}`} was refused: ${plain(d.reason ?? "")}${d.detail ? `, ${d.detail}` : ""}` });
  }
  return told.sort((a, b) => a.at - b.at);
}

function sentence(s: Store, e: Event, before: State | undefined, mission?: Mission): string {
  const about = name(s, { kind: e.entity as Key["kind"], id: e.id }), by = e.by || "", why = because(e), now = e.state ?? {};
  if (e.revision === 0) return `${about}: ${by ? `${by}'s change` : "a request"} was refused${why}`;
  if (!before && e.from === e.to) return by && `${by} changed ${about}, now ${state(e)}${why}`;
  before ??= {};
  const is = (field: string) => !!now[field] && now[field] !== before[field], ended = (field: string) => field in now && !now[field] && !!before[field];
  switch (e.entity) {
    case "order": return orderSentence(s, e, about, by || "somebody", why, is, ended);
    case "drone": return droneSentence(e, about, by || "somebody", why, is, ended);
    case "mission": return missionSentence(s, e, by, why, before, mission);
  }
  return "";
}

type Asks = (field: string) => boolean;

function orderSentence(s: Store, e: Event, about: string, by: string, why: string, is: Asks, ended: Asks): string {
  const state = e.state ?? {}, order = s.all.order.get(e.id), drone = (id: unknown) => name(s, { kind: "drone", id: String(id || "a drone") });
  const carrier = drone(state.assignedDroneId || e.droneId), eta = order && open(order) ? s.eta(order) : NaN, arrival = isNaN(eta) ? "" : `, arrival now ${clock(eta)}`;
  if (!e.from) return `${about} was ordered${state.deadline ? `, deadline ${clock(time(String(state.deadline)))}` : ""}`;
  if (e.from !== e.to) switch (e.to) {
    case "ASSIGNED": return `${carrier} was sent for ${about}${arrival}`;
    case "IN_DELIVERY": return `${carrier} took ${about} aboard${arrival}`;
    case "DELIVERED": return `${carrier} delivered ${about}${onTime(time(e.time) - time(String(state.deadline ?? "")))}`;
    case "CANCELLED": return e.by ? `${by} cancelled ${about}${why}` : `${about} was cancelled${why}`;
    case "PENDING": return `${about} waits for another drone${why}`;
  }
  if (is("held")) return `${by} held ${about}${why}`;
  if (ended("held")) return `${by} released ${about}${why}`;
  if (is("late")) return `The deadline of ${about} passed`;
  if (is("pinnedDroneId")) return `${by} pinned ${about} to ${drone(state.pinnedDroneId)}${why}`;
  if (ended("pinnedDroneId")) return `${by} lets any drone take ${about}${why}`;
  if (is("forbiddenDroneIds") || ended("forbiddenDroneIds")) return `${by} changed which drones must not take ${about}: ${String(state.forbiddenDroneIds || "none")}${why}`;
  if (e.cause === "CYCLE") return `${about} went to the area of ${name(s, { kind: "depot", id: String(state.planningDepotId) })}${why}`;
  if (is("priority") && e.by) return `${by} made ${about} ${plain(String(state.priority))}${why}`;
  if (is("deadline") && e.by) return `${by} set the deadline of ${about} to ${clock(time(String(state.deadline)))}${why}`;
  if (is("assignedDroneId")) return `${carrier} takes ${about} instead${arrival}`;
  return e.by ? `${by} changed ${about}${why}` : "";
}

function onTime(after: number): string { return isNaN(after) ? "" : after > 0 ? `, ${span(after)} late` : ", in time"; }

const states: Record<string, string> = {
  IDLE: "is free", MOVING: "flies", DELIVERING: "delivers", CHARGING: "charges", MAINTENANCE: "is in maintenance", UNKNOWN: "is silent", PROBLEM: "reports a problem", EMERGENCY: "reports an emergency",
};

function droneSentence(e: Event, about: string, by: string, why: string, is: Asks, ended: Asks): string {
  if (is("grounded")) return `${by} grounded ${about}${why}`;
  if (ended("grounded")) return `${by} released ${about}${why}`;
  if (ended("emergencyLatched")) return `${by} cleared the emergency of ${about}${why}`;
  if (is("ghostMissionId")) return `${about} still flies a mission that failed`;
  if (is("retired")) return `${by} retired ${about}${why}`;
  if (is("missionAcked")) return `${about} confirmed its mission`;
  if (is("missionMoved")) return `${about} took off`;
  if (!e.from) return `${about} was heard of first, and ${states[e.to] ?? plain(e.to)}`;
  if (e.from !== e.to) return `${about} ${states[e.to] ?? `is ${plain(e.to)}`}${why}`;
  return e.by ? `${by} changed ${about}${why}` : "";
}

// atStop is what a drone has done once it has reached a stop.
const atStop: Record<string, (order: string) => string> = {
  DEPOT_START: () => "left its depot", WAREHOUSE_PICKUP: (order) => `picked up ${order}`, HOSPITAL_DELIVERY: (order) => `delivered ${order}`, DEPOT_RETURN: () => "is back at its depot",
};

function missionSentence(s: Store, e: Event, by: string, why: string, before: State, mission?: Mission): string {
  const now = e.state ?? {}, known = mission?.id === e.id ? mission : s.all.mission.get(e.id), drone = name(s, { kind: "drone", id: known?.droneId ?? e.droneId ?? "the drone" });
  const n = Number(now.orders ?? 0), reached = Number(now.reachedStops ?? 0);
  if (!e.from) return `${drone} got a mission with ${n === 1 ? "1 order" : `${n} orders`}`;
  if (e.to === "COMPLETED" && e.from !== e.to) return `${drone} completed its mission`;
  if (e.to === "FAILED" && e.from !== e.to) return `The mission of ${drone} failed: ${plain(String(now.failureReason ?? ""))}${why}`;
  if (now.recalled && !before.recalled) return `${by || "The State Manager"} recalled ${drone}${why}`;
  if (reached > Number(before.reachedStops ?? 0)) {
    const w = known?.route[reached - 1], about = w?.relatedOrderId ? name(s, { kind: "order", id: w.relatedOrderId }) : "";
    return `${drone} ${w ? (atStop[w.type]?.(about) ?? `reached its stop: ${stopText(w)}`) : "reached its stop"} (stop ${reached}${known ? ` of ${known.route.length}` : ""})`;
  }
  if (now.routeRevision !== before.routeRevision && before.routeRevision !== undefined) return `The route of ${drone} was changed${why}`;
  return "";
}

// state is how an entity is after an event, where nobody knows how it was before.
function state(e: Event): string {
  const now = e.state ?? {}, flags = ["held", "grounded", "recalled", "retired", "emergencyLatched"].filter((field) => now[field]).map((field) => field === "emergencyLatched" ? "in an emergency" : field);
  return [plain(e.to), ...flags, now.priority && plain(String(now.priority)), now.pinnedDroneId && `pinned to ${String(now.pinnedDroneId)}`].filter(Boolean).join(", ");
}

// because is an event's reason; who gave it is said elsewhere.
function because(e: Event): string {
  const reason = (e.reason ?? "").replace(` (by ${e.by})`, "");
  return reason && `: ${/^[A-Z_]+$/.test(reason) ? plain(reason) : reason}`;
}
