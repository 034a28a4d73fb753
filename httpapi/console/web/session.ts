// Who is signed in, and requests in that name.

export interface Session { name?: string; method: string; verbs: string[] } // "drones ground" and the like

// session is who is signed in; null if the server does not tell, or refuses.
export async function session(): Promise<{ status: number; who: Session | null }> {
  try {
    const resp = await fetch("/api/v1/session");
    return { status: resp.status, who: resp.ok ? ((await resp.json()) as Session) : null };
  } catch {
    return { status: 0, who: null };
  }
}

// Refusal is what the server says is wrong.
export class Refusal extends Error {
  constructor(readonly status: number, detail: string) { super(detail); }
}

// ask sends a request. It throws a Refusal.
export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const resp = await fetch("/api/v1/" + path, body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const text = await resp.text();
  if (resp.ok) return JSON.parse(text) as T;
  let detail = "";
  try { detail = (JSON.parse(text) as { detail?: string }).detail ?? ""; } catch { /* a proxy's page */ }
  throw new Refusal(resp.status, detail || `the server answers ${resp.status}`);
}

export function pathOf(kind: string, id: string, last: string): string { return `${kind}s/${encodeURIComponent(id)}/${last}`; }
