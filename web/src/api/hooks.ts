/** React's side of the API: entries as queries, events that make them stale, and whether a button may act now. */
import { QueryClient, useQuery, type UseQueryOptions, type UseQueryResult } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useRef, useSyncExternalStore } from "react";
import { call, type ArgumentsOf, type DataOf, type EntryName } from "./client";
import type { Me } from "./entries";
import type { Connection, Events, ServerEvent } from "./events";
import { ApiFault } from "./fault";

/** The first word of a query's key: what an event makes stale. */
export type Noun = "reviews" | "changes" | "plans" | "files" | "store" | "tools" | "calls" | "me";

const STALE_AFTER: Record<string, Noun[]> = {
  "review.opened": ["reviews"],
  "review.changed": ["reviews"],
  "review.applied": ["reviews", "changes", "files"],
  "plan.changed": ["plans", "reviews"],
  "change.made": ["changes", "files", "store"],
};

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        retry: (count, error) => error instanceof ApiFault && error.retryable && count < 2,
      },
      mutations: { retry: false },
    },
  });
}

/** Make the queries stale that an event is about; a greeting or a gap makes all of them stale. */
export function applyEvent(client: QueryClient, event: ServerEvent): void {
  if (event.name === "hello" || event.name === "resync") {
    void client.invalidateQueries();
    return;
  }
  for (const noun of STALE_AFTER[event.name] ?? []) void client.invalidateQueries({ queryKey: [noun] });
}

export const EventsContext = createContext<Events | null>(null);
export const MeContext = createContext<Me | null>(null);

export function useMe(): Me {
  const me = useContext(MeContext);
  if (!me) throw new Error("useMe is for pages, which are shown to who is signed in");
  return me;
}

export function useEvents(): Events {
  const events = useContext(EventsContext);
  if (!events) throw new Error("useEvents is for pages, which are shown to who is signed in");
  return events;
}

export function useConnection(): Connection {
  const events = useEvents();
  return useSyncExternalStore(events.watch, () => events.connection);
}

/** Return whether something may be sent now: nothing is queued while the connection is down. */
export function useCanAct(): boolean {
  const connection = useConnection();
  const me = useMe();
  return connection === "live" && !me.read_only;
}

/** Call `listener` on each event for as long as the component is shown. */
export function useServerEvent(listener: (event: ServerEvent) => void): void {
  const events = useEvents();
  const newest = useRef(listener);
  useEffect(() => {
    newest.current = listener;
  });
  useEffect(() => events.subscribe((event) => newest.current(event)), [events]);
}

type Options<Data> = Omit<UseQueryOptions<Data, Error, Data>, "queryKey" | "queryFn">;

/** Read an entry; it is asked anew when an event says that `noun` changed. */
export function useEntry<E extends EntryName>(
  noun: Noun,
  entry: E,
  args: ArgumentsOf<E>,
  options: Options<DataOf<E>> = {},
): UseQueryResult<DataOf<E>> {
  return useQuery<DataOf<E>, Error, DataOf<E>>({
    queryKey: [noun, entry, args],
    queryFn: ({ signal }) => call(entry, args, signal),
    ...options,
  });
}
