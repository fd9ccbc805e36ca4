/** The rows of a plan, fetched by page as they come into view. */
import { useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { call, type ArgumentsOf, type DataOf } from "@/api/client";
import type { TreeRow } from "@/shared/tree/flatten";
import { slotsToRead, type Slot } from "../rules/slots";
import type { FolderNode } from "../rules/tree";

export type PlanHead = DataOf<"plan_rows">;
export type PlanRow = PlanHead["rows"][number];
export type PlanRowsArguments = ArgumentsOf<"plan_rows">;

/** One file by its place in a folder or a list; `row` is there once its page is. */
export interface FileNode {
  id: string;
  name: string;
  isFolder: false;
  type: "file";
  folder: string | null;
  index: number;
  row: PlanRow | undefined;
}

export type PlanNode = FolderNode | FileNode;

export const PAGE = 200;

export interface PlanRowsView {
  /** The rows of a folder, or of the whole list for null, by page. */
  files: (folder: string | null, count: number) => FileNode[];
  /** How many rows the whole list has; undefined until its first page is there. */
  total: number | undefined;
  /** The hashes that the shown pages were read with. */
  hashes: readonly string[];
  error: Error | null;
  retry: () => void;
  /** Say which rows are in view. */
  show: (rows: readonly TreeRow<PlanNode>[]) => void;
}

/** Read the rows of a view; with `isFlat` as one list, else folder by folder. */
export function usePlanRows(base: PlanRowsArguments, isFlat: boolean): PlanRowsView {
  const [shown, setShown] = useState<readonly Slot[]>([]);
  const slots = slotsToRead(shown, isFlat);
  const results = useQueries({
    queries: slots.map(({ folder, page }) => {
      const args: PlanRowsArguments = { ...base, offset: page * PAGE, limit: PAGE, ...(folder === null ? {} : { folder }) };
      return {
        queryKey: ["plans", "plan_rows", args],
        queryFn: ({ signal }: { signal: AbortSignal }) => call("plan_rows", args, signal),
      };
    }),
  });
  const pages = new Map<string, PlanHead>();
  slots.forEach((slot, at) => {
    const data = results[at]?.data;
    if (data) pages.set(slotKey(slot), data);
  });
  const version = slots.map((slot, at) => `${slotKey(slot)}@${results[at]?.dataUpdatedAt ?? 0}`).join("\n");
  const files = useMemo(
    () =>
      (folder: string | null, count: number): FileNode[] =>
        Array.from({ length: count }, (_, index) => {
          const row = pages.get(slotKey({ folder, page: Math.floor(index / PAGE) }))?.rows[index % PAGE];
          return { id: `file:${folder ?? ""}:${index}`, name: row?.name ?? "", isFolder: false, type: "file", folder, index, row };
        }),
    // The pages are those of this version.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [version],
  );
  const show = useCallback((rows: readonly TreeRow<PlanNode>[]) => {
    const wanted = new Map<string, Slot>();
    for (const { node } of rows) {
      if (node.type !== "file") continue;
      const slot = { folder: node.folder, page: Math.floor(node.index / PAGE) };
      wanted.set(slotKey(slot), slot);
    }
    setShown((old) => (old.length === wanted.size && old.every((slot) => wanted.has(slotKey(slot))) ? old : [...wanted.values()]));
  }, []);
  const failed = results.find((result) => result.isError);
  return {
    files,
    total: pages.get(slotKey({ folder: null, page: 0 }))?.total,
    hashes: [...new Set([...pages.values()].map((page) => page.plan_hash))],
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
    show,
  };
}

function slotKey({ folder, page }: Slot): string {
  return `${folder === null ? "all" : `in ${folder}`} ${page}`;
}

/** Return every row of a folder that a plan moves files to. */
export async function allRowsIn(planId: string, folder: string): Promise<PlanRow[]> {
  const rows: PlanRow[] = [];
  for (;;) {
    const page = await call("plan_rows", { plan_id: planId, folder, offset: rows.length, limit: 2000 });
    rows.push(...page.rows);
    if (page.rows.length === 0 || rows.length >= page.total) return rows;
  }
}
