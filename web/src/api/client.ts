/** Calls of the registry's entries over `POST /api/ENTRY`, with the types of the server's own OpenAPI document. */
import { faultOf, unreachable } from "./fault";
import type { paths } from "./schema";
import { forgetSession, KEY_HEADER, sessionKey } from "./session";

type Posted = { [P in keyof paths]: paths[P] extends { post: { requestBody: unknown } } ? P : never }[keyof paths];
type EntryOf<P> = P extends `/api/${infer Name}` ? (Name extends `${string}/${string}` ? never : Name) : never;

/** The name of an entry of the registry. */
export type EntryName = EntryOf<Posted>;

type Post<E extends EntryName> = paths[`/api/${E}` & keyof paths] extends { post: infer P } ? P : never;
export type ArgumentsOf<E extends EntryName> =
  Post<E> extends { requestBody?: { content: { "application/json": infer A } } } ? A : Record<string, never>;
type BodyOf<E extends EntryName> =
  Post<E> extends { responses: { 200: { content: { "application/json": infer B } } } } ? B : never;
export type DataOf<E extends EntryName> = BodyOf<E> extends { data: infer D } ? D : never;

/** An entry's answer: the data for this page, and exactly the blocks that an agent would be given. */
export interface EntryAnswer<Data> {
  data: Data;
  text: string[];
  content: unknown[];
  duration_ms: number;
}

const signedOutListeners = new Set<() => void>();

/** Call `listener` when the server refuses the session. */
export function onSignedOut(listener: () => void): () => void {
  signedOutListeners.add(listener);
  return () => signedOutListeners.delete(listener);
}

/** Send one request of the API; throws ApiFault. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set(KEY_HEADER, sessionKey() ?? "");
  if (init.body !== undefined && init.body !== null) headers.set("Content-Type", "application/json");
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  if (response.status === 401) {
    forgetSession();
    for (const listener of signedOutListeners) listener();
  }
  throw faultOf(response.status, body);
}

/** Return the JSON of a GET. */
export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, signal ? { signal } : {});
  return (await response.json()) as T;
}

/** Call an entry whose name is only known at run time; the Tools page does. */
export async function callByName(
  entry: string,
  args: unknown,
  signal?: AbortSignal,
): Promise<EntryAnswer<unknown>> {
  const init: RequestInit = { method: "POST", body: JSON.stringify(args) };
  const response = await request(`/api/${encodeURIComponent(entry)}`, signal ? { ...init, signal } : init);
  return (await response.json()) as EntryAnswer<unknown>;
}

/** Call an entry and return its data. */
export async function call<E extends EntryName>(entry: E, args: ArgumentsOf<E>, signal?: AbortSignal): Promise<DataOf<E>> {
  const answer = await callByName(entry, args, signal);
  return answer.data as DataOf<E>;
}
