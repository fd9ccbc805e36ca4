/**
 * Pure: the visible rows of folders of which only some pages are known. A folder of 100,000 entries is a number and the pages
 * that were looked at; any row is found by its index in the time that the open folders take, not the rows.
 */
import type { RowList, TreeNode, TreeRow } from "@/shared/tree/flatten";
import { idOf, type Place } from "./place";

export const PAGE = 200;

export interface Entry {
  place: Place;
  name: string;
  type: "root" | "project" | "directory" | "file" | "link" | "other";
  sizeBytes?: number;
  modifiedAt?: string;
  access?: string;
  note?: string;
}

/** What is known of an open folder. Pages that are `stale` are shown until they were asked again. */
export interface Folder {
  total: number | null;
  pages: Map<number, Entry[]>;
  stale: Set<number>;
  filter: string;
  error: string | null;
}

/** A row: an entry, or what stands for one: not asked yet, or a note in place of all of them. */
export interface FileNode extends TreeNode {
  entry: Entry | null;
  note?: string;
  folder: string;
  position: number;
}

interface Span {
  folder: string;
  depth: number;
  count: number;
  length: number;
  open: { position: number; span: Span }[];
  note: string | null;
  entryAt: (position: number) => Entry | undefined;
}

export interface FileRows extends RowList<FileNode> {
  /** Return the index of an entry of a folder, -1 when it is not visible. */
  indexOf: (folder: string, position: number) => number;
  /** Return the position of an entry among the known ones of a folder, -1 when it is not among them. */
  positionOf: (folder: string, id: string) => number;
}

/** The id of what stands above all roots and projects. */
export const TOP = "";

export function isFolder(entry: Entry): boolean {
  return entry.type === "root" || entry.type === "project" || entry.type === "directory";
}

/** Return the rows of some roots and of the folders that are open beneath them. */
export function makeRows(tops: readonly Entry[], folders: ReadonlyMap<string, Folder>, open: ReadonlySet<string>): FileRows {
  const spans = new Map<string, Span>();
  const nest = (entries: Iterable<[number, Entry]>, depth: number) => {
    const nested: Span["open"] = [];
    for (const [position, entry] of entries) {
      const id = idOf(entry.place);
      if (isFolder(entry) && open.has(id)) nested.push({ position, span: spanOf(id, depth) });
    }
    return nested.sort((left, right) => left.position - right.position);
  };
  const add = (span: Omit<Span, "length">): Span => {
    const whole = { ...span, length: span.count + span.open.reduce((sum, each) => sum + each.span.length, 0) };
    spans.set(span.folder, whole);
    return whole;
  };
  const spanOf = (id: string, depth: number): Span => {
    const folder = folders.get(id);
    const note = noteOf(folder);
    if (!folder || note !== null) return add({ folder: id, depth, count: 1, open: [], note, entryAt: () => undefined });
    const entryAt = (position: number) => folder.pages.get(Math.floor(position / PAGE))?.[position % PAGE];
    return add({ folder: id, depth, count: folder.total ?? 0, open: nest(known(folder), depth + 1), note, entryAt });
  };
  const top = add({ folder: TOP, depth: 0, count: tops.length, open: nest(tops.entries(), 1), note: null, entryAt: (at) => tops[at] });
  return {
    length: top.length,
    at: (index) => (index < 0 || index >= top.length ? undefined : rowAt(top, index, -1, 0, open)),
    indexOf: (folder, position) => indexOf(top, folder, position),
    positionOf: (folder, id) => {
      if (folder === TOP) return tops.findIndex((entry) => idOf(entry.place) === id);
      for (const [position, entry] of known(folders.get(folder))) if (idOf(entry.place) === id) return position;
      return -1;
    },
  };
}

function noteOf(folder: Folder | undefined): string | null {
  if (!folder) return "Loading";
  if (folder.error !== null) return folder.error;
  if (folder.total === null) return "Loading";
  if (folder.total === 0) return folder.filter ? "No name holds the filter" : "Empty";
  return null;
}

function* known(folder: Folder | undefined): Generator<[number, Entry]> {
  for (const [page, entries] of folder?.pages ?? []) {
    for (let at = 0; at < entries.length; at += 1) {
      const entry = entries[at];
      if (entry) yield [page * PAGE + at, entry];
    }
  }
}

/** Return the row at an index of a span; `parent` is the row above it, `start` the index of its first row. */
function rowAt(span: Span, index: number, parent: number, start: number, open: ReadonlySet<string>): TreeRow<FileNode> {
  let before = 0;
  for (const { position, span: inner } of span.open) {
    const own = position + before;
    if (index <= own) break;
    if (index <= own + inner.length) return rowAt(inner, index - own - 1, start + own, start + own + 1, open);
    before += inner.length;
  }
  const position = index - before;
  const entry = span.note === null ? span.entryAt(position) : undefined;
  const id = entry ? idOf(entry.place) : `${span.folder}\n${position}`;
  return {
    node: {
      id,
      name: entry?.name ?? "",
      isFolder: entry !== undefined && isFolder(entry),
      entry: entry ?? null,
      ...(span.note === null ? {} : { note: span.note }),
      folder: span.folder,
      position,
    },
    depth: span.depth,
    isOpen: entry !== undefined && isFolder(entry) && open.has(id),
    position: position + 1,
    setSize: span.count,
    parent,
  };
}

function indexOf(span: Span, folder: string, position: number): number {
  if (span.folder === folder) {
    if (position < 0 || position >= span.count) return -1;
    return span.open.reduce((index, inner) => (inner.position < position ? index + inner.span.length : index), position);
  }
  let before = 0;
  for (const inner of span.open) {
    const at = indexOf(inner.span, folder, position);
    if (at >= 0) return inner.position + before + 1 + at;
    before += inner.span.length;
  }
  return -1;
}
