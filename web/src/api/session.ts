/**
 * The session of this browser: a cookie that scripts cannot read, and a second key in localStorage that is sent as a header.
 * Cookies ignore ports, so every web server of this machine that the browser visits is sent ours; alone it opens nothing.
 */
import { faultOf, unreachable } from "./fault";
import type { Me } from "./entries";

const KEY = "holdfast.key";
export const KEY_HEADER = "X-Holdfast-Key";

export type Credential = { link: string } | { api_key: string };

export function sessionKey(): string | null {
  return localStorage.getItem(KEY);
}

export function forgetSession(): void {
  localStorage.removeItem(KEY);
}

/** Take the one-use token out of the address `/open#TOKEN`, so that it stays in no history. */
export function takeLinkToken(): string | null {
  if (location.pathname !== "/open") return null;
  const token = location.hash.slice(1);
  history.replaceState(null, "", "/");
  return token || null;
}

/** Exchange a link's token or an API key for a session; return who is signed in. */
export async function openSession(credential: Credential): Promise<Me> {
  const response = await fetch("/api/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(credential),
  }).catch(() => {
    throw unreachable();
  });
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw faultOf(response.status, body);
  const { key, me } = body as { key: string; me: Me };
  localStorage.setItem(KEY, key);
  return me;
}

/** Call `changed` when another tab signs in or out. */
export function watchSession(changed: () => void): () => void {
  const listen = (event: StorageEvent) => {
    if (event.key === KEY || event.key === null) changed();
  };
  window.addEventListener("storage", listen);
  return () => window.removeEventListener("storage", listen);
}
