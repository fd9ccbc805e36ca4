/** Pure: which calls the address asks for, and which of the newest wait behind the chip. */
import { quoteWord } from "@/shared/commands";

export interface ListedCall {
  position: number;
}

export interface CallConditions {
  tool?: string;
  status?: "ok" | "error" | "cancelled" | "input_required";
  client?: string;
  kind?: "agent" | "person";
  since?: string;
}

export const SPANS: readonly { value: string; label: string; ms: number }[] = [
  { value: "1h", label: "last hour", ms: 3_600_000 },
  { value: "24h", label: "last 24 h", ms: 86_400_000 },
  { value: "7d", label: "last 7 days", ms: 7 * 86_400_000 },
  { value: "all", label: "all times", ms: 0 },
];
const DEFAULT_SPAN = "24h";
const STATUSES = ["ok", "error", "cancelled", "input_required"] as const;

/** Return the conditions of an address; agents' calls of the last day when it names none. */
export function conditionsOf(query: URLSearchParams, now: number): CallConditions {
  const span = SPANS.find((each) => each.value === (query.get("since") ?? DEFAULT_SPAN));
  const status = STATUSES.find((each) => each === query.get("status"));
  const kind = query.get("kind") ?? "agent";
  return {
    ...(query.get("tool") ? { tool: query.get("tool") ?? "" } : {}),
    ...(query.get("client") ? { client: query.get("client") ?? "" } : {}),
    ...(status ? { status } : {}),
    ...(kind === "agent" || kind === "person" ? { kind } : {}),
    ...(span?.ms ? { since: new Date(now - span.ms).toISOString() } : {}),
  };
}

/** Return the conditions as the command that lists the same. */
export function commandOf(query: URLSearchParams): string {
  const kind = query.get("kind") ?? "agent";
  const since = query.get("since") ?? DEFAULT_SPAN;
  const words = ["holdfast calls"];
  for (const name of ["tool", "status", "client"]) {
    const value = query.get(name);
    if (value) words.push(`--${name} ${quoteWord(value)}`);
  }
  if (kind === "agent" || kind === "person") words.push(`--kind ${kind}`);
  if (since !== "all") words.push(`--since ${since}`);
  return words.join(" ");
}

/** Return how many of the newest calls are not in the list yet, whose newest has this position. */
export function countNew(top: number | undefined, newest: readonly ListedCall[]): number {
  return newest.filter((call) => call.position > (top ?? 0)).length;
}
