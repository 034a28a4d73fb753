import type { Props } from "./app";
import type { Store } from "./store";
import type { Alert, Key, Place } from "./types";
import { plain } from "./words";

// name is what people call an entity; its id if it has no other name.
export function name(s: Store, k: Key): string {
  const all = s.all;
  switch (k.kind) {
    case "order": {
      const o = all.order.get(k.id);
      return o ? `${plain(o.productType ?? "order")} to ${o.requesterId ?? placeName(o.deliveryLocation)}` : k.id;
    }
    case "mission": {
      const m = all.mission.get(k.id), n = m?.orderIds.length ?? 0;
      return m ? `${name(s, { kind: "drone", id: m.droneId })} with ${n === 1 ? "1 order" : `${n} orders`}` : k.id;
    }
    case "drone": return all.drone.get(k.id)?.shortName || k.id;
    case "depot": return all.depot.get(k.id)?.name || k.id;
    case "warehouse": return all.warehouse.get(k.id)?.name || k.id;
    default: return k.id;
  }
}

// said is the text of an alert with the name of what it is about.
export function said(s: Store, a: Alert): string { return a.text.replace(a.entity.id, () => name(s, a.entity)); }

function placeName(p: Place): string { return `${p.lat.toFixed(4)}, ${p.lon.toFixed(4)}`; }

// Cut shows a text; a long id without the part before its end, which tells it apart.
export function Cut({ text }: { text: string }) {
  const letters = [...text];
  if (/\s/.test(text)) return <>{text}</>;
  if (letters.length <= 16) return <span class="word">{text}</span>;
  return <span class="id"><span>{letters.slice(0, -9).join("")}</span><span>{letters.slice(-9).join("")}</span></span>;
}

// Ref names an entity; pressed, it selects it. Its title has the id.
export function Ref({ p, k }: Props & { k: Key }) {
  return <button type="button" class="ref" dir="auto" title={k.id} onClick={() => p.select(k)}><Cut text={name(p.store, k)} /></button>;
}

export function Refs({ p, list }: Props & { list: Key[] }) {
  return <>{list.map((k) => <Ref key={`${k.kind} ${k.id}`} p={p} k={k} />)}</>;
}
