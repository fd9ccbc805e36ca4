/** The calls that match, by page: all of them have a place in the list, and those in view are fetched. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { call, type DataOf } from "@/api/client";
import type { CallConditions } from "../rules/calls";

export type CallFacts = DataOf<"list_calls">["calls"][number];

const PAGE = 200;

export interface CallPages {
  /** How many calls match; undefined until the first page is there. */
  total: number | undefined;
  isRecording: boolean;
  error: Error | null;
  retry: () => void;
  /** A call by its place, the newest first; undefined while its page is on its way. */
  at: (index: number) => CallFacts | undefined;
  /** The place of a call among those that were fetched; -1 when it is none of them. */
  indexOf: (id: string | null) => number;
  /** Say which rows are in view. */
  show: (first: number, last: number) => void;
}

/** Read the calls that match. Calls that end later move none of them: every page counts from the newest call of the first. */
export function useCallPages(conditions: CallConditions, key: readonly unknown[]): CallPages {
  const first = useQuery({
    queryKey: [...key, "first"],
    queryFn: ({ signal }) => call("list_calls", { ...conditions, limit: PAGE, with_total: true }, signal),
    staleTime: Infinity,
  });
  const [wanted, setWanted] = useState<readonly number[]>([]);
  const start = first.data?.start;
  const total = first.data?.total;
  const further = useQueries({
    queries: (start === undefined ? [] : wanted).map((page) => ({
      queryKey: [...key, "page", start, page],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call("list_calls", { ...conditions, limit: PAGE, offset: page * PAGE, ...(start ? { cursor: start } : {}) }, signal),
      staleTime: Infinity,
    })),
  });
  const pages = new Map<number, readonly CallFacts[]>();
  if (first.data) pages.set(0, first.data.calls);
  wanted.forEach((page, at) => {
    const data = further[at]?.data;
    if (data) pages.set(page, data.calls);
  });
  const show = useCallback(
    (from: number, to: number) => {
      const next: number[] = [];
      for (let page = Math.max(1, Math.floor(from / PAGE)); page <= Math.floor(to / PAGE); page += 1) next.push(page);
      setWanted((old) => (old.join() === next.join() ? old : next));
    },
    [],
  );
  const failed = further.find((page) => page.isError);
  return useMemo(
    () => ({
      total: total ?? undefined,
      isRecording: first.data?.is_recording ?? true,
      error: first.error ?? failed?.error ?? null,
      retry: () => void (first.isError ? first : failed)?.refetch(),
      at: (index) => pages.get(Math.floor(index / PAGE))?.[index % PAGE],
      indexOf: (id) => {
        for (const [page, calls] of pages) {
          const at = id === null ? -1 : calls.findIndex((each) => each.id === id);
          if (at >= 0) return page * PAGE + at;
        }
        return -1;
      },
      show,
    }),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the pages are those of these answers
    [total, first.data, first.error, failed, show, further.map((page) => page.dataUpdatedAt).join(), wanted],
  );
}
