/**
 * What the page knows of folders: which are open, and the pages of them that were looked at. It outlives the page, so that who
 * comes back finds the tree as it was. Nothing here is of React but the subscription.
 */
import { call } from "@/api/client";
import { asFault } from "@/api/fault";
import { ancestorsOf, idOf, parentOf, type Place } from "./rules/place";
import { isFolder, makeRows, PAGE, TOP, type Entry, type FileNode, type FileRows, type Folder } from "./rules/rows";

export type Order = "name" | "size" | "modified";

/** What is selected: an entry by its folder and position, and its id once it is known. */
export interface Cursor {
  folder: string;
  position: number;
  id: string | null;
}

interface Seen {
  rows: FileRows;
  cursor: Cursor | null;
  active: number;
}

export class FileTree {
  order: Order = "name";
  private tops: Entry[] = [];
  private readonly open = new Set<string>();
  private readonly folders = new Map<string, Folder>();
  private readonly places = new Map<string, Place>();
  private readonly asked = new Set<string>();
  /** Counts the refreshes: what was asked for before one does not stand for what is asked for after it. */
  private round = 0;
  /** The round of the newest answer for each page of a folder; an older one comes too late. */
  private readonly answered = new Map<string, number>();
  private cursor: Cursor | null = null;
  private range = { first: 0, last: 0 };
  private readonly watchers = new Set<() => void>();
  private seen: Seen = { rows: makeRows([], new Map(), new Set()), cursor: null, active: -1 };

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  look = (): Seen => this.seen;

  /** Show these roots and projects; what is open beneath them stays open. */
  setTops(tops: readonly Entry[]): void {
    this.tops = [...tops];
    for (const top of tops) this.places.set(idOf(top.place), top.place);
    this.changed();
  }

  setOpen(entry: Entry, isOpen: boolean): void {
    const id = idOf(entry.place);
    this.places.set(id, entry.place);
    if (isOpen) this.open.add(id);
    else this.open.delete(id);
    this.changed();
    if (isOpen) void this.fetch(id, 0);
  }

  select(cursor: Cursor | null): void {
    this.cursor = cursor;
    this.changed();
  }

  /** Keep the rows in view fetched. */
  setRange = (first: number, last: number): void => {
    this.range = { first, last };
    this.fetchRange();
  };

  setOrder(order: Order): void {
    this.order = order;
    this.refresh();
  }

  /** Show only names that hold a text in one folder. */
  setFilter(id: string, filter: string): void {
    const folder = this.folders.get(id);
    if ((folder?.filter ?? "") === filter) return;
    this.open.add(id);
    this.folders.set(id, { total: folder?.total ?? null, pages: folder?.pages ?? new Map<number, Entry[]>(), stale: new Set(), error: null, filter });
    void this.fetch(id, 0);
  }

  placeOf(id: string): Place | null {
    return this.places.get(id) ?? null;
  }

  totalOf(place: Place): number | null {
    return this.folders.get(idOf(place))?.total ?? null;
  }

  /** Return the folder that is selected, or that holds what is: what the filter and new entries are about. */
  currentFolder(): Place | null {
    const { rows, active } = this.seen;
    const node = rows.at(active)?.node;
    if (!node) return null;
    if (node.entry && (node.folder === TOP || isFolder(node.entry))) return node.entry.place;
    return this.placeOf(node.folder);
  }

  /** Open a folder and select its first entry. */
  enter(place: Place): void {
    const id = idOf(place);
    this.open.add(id);
    this.changed();
    const first = this.folders.get(id)?.pages.get(0)?.[0];
    if (first) this.select({ folder: id, position: 0, id: idOf(first.place) });
  }

  filterOf(id: string): string {
    return this.folders.get(id)?.filter ?? "";
  }

  /** Ask everything anew that is shown; until the answers come it is shown as it was. */
  refresh(): void {
    this.round += 1;
    for (const [id, folder] of this.folders) {
      if (!this.open.has(id)) this.folders.delete(id);
      else for (const page of folder.pages.keys()) folder.stale.add(page);
    }
    for (const id of this.open) if (this.folders.get(id)?.error !== null) void this.fetch(id, 0);
    this.fetchRange();
    for (const id of this.open) if (this.folders.get(id)?.stale.has(0)) void this.fetch(id, 0);
  }

  /** Open what holds a place and select it, as far as its folders' first pages tell where it is. */
  async reveal(place: Place): Promise<void> {
    const above = this.tops
      .filter((top) => top.place.kind === place.kind)
      .map((top) => (idOf(top.place) === idOf(place) ? [] : ancestorsWithin(place, top.place)))
      .filter((folders) => folders !== null)
      .sort((left, right) => right.length - left.length)[0];
    if (!above) return;
    for (const folder of above) {
      const id = idOf(folder);
      this.places.set(id, folder);
      this.open.add(id);
      if (!this.folders.get(id)?.pages.has(0)) await this.fetch(id, 0);
    }
    const top = this.tops.findIndex((each) => idOf(each.place) === idOf(place));
    const folder = top >= 0 ? TOP : idOf(parentOf(place));
    this.changed();
    const position = this.seen.rows.positionOf(folder, idOf(place));
    if (position >= 0) this.select({ folder, position, id: idOf(place) });
  }

  private fetchRange(): void {
    const { rows } = this.seen;
    for (let index = this.range.first; index <= this.range.last && index < rows.length; index += 1) {
      const node = rows.at(index)?.node;
      if (!node || node.folder === TOP || node.note !== undefined) continue;
      const page = Math.floor(node.position / PAGE);
      if (node.entry === null || this.folders.get(node.folder)?.stale.has(page)) void this.fetch(node.folder, page);
    }
  }

  private async fetch(id: string, page: number): Promise<void> {
    const place = this.places.get(id);
    if (!place) return;
    const filter = this.filterOf(id);
    const { round } = this;
    const asked = [id, page, filter, this.order, round].join("\n");
    if (this.asked.has(asked)) return;
    this.asked.add(asked);
    const slot = `${id}\n${page}`;
    try {
      const { entries, total } = await browse(place, page, filter, this.order);
      if (filter !== this.filterOf(id) || round < (this.answered.get(slot) ?? 0)) return;
      this.answered.set(slot, round);
      this.take(id, page, entries, total, filter);
    } catch (error) {
      const fault = asFault(error);
      const isTop = this.tops.some((top) => idOf(top.place) === id);
      if (!isTop && (fault.code === "NOT_FOUND" || fault.code === "NOT_DIRECTORY")) {
        this.open.delete(id);
        this.folders.delete(id);
      } else {
        const folder = this.folders.get(id) ?? emptyFolder(filter);
        folder.error = fault.message;
        this.folders.set(id, folder);
      }
    } finally {
      this.asked.delete(asked);
    }
    this.changed();
  }

  private take(id: string, page: number, entries: Entry[], total: number, filter: string): void {
    const before = this.folders.get(id);
    const isOther = !before || before.total !== total || before.filter !== filter || before.error !== null;
    // Another number of entries moves what comes after the first that is new: those pages are asked again when they are looked at.
    const folder: Folder = isOther
      ? { ...emptyFolder(filter), total, stale: new Set(before?.pages.keys() ?? []), pages: new Map(before?.filter === filter ? before.pages : []) }
      : before;
    folder.total = total;
    folder.pages.set(page, entries);
    folder.stale.delete(page);
    for (const known of [...folder.pages.keys()]) if (known * PAGE >= total) folder.pages.delete(known);
    for (const entry of entries) if (isFolder(entry)) this.places.set(idOf(entry.place), entry.place);
    this.folders.set(id, folder);
  }

  private changed(): void {
    const rows = makeRows(this.tops, this.folders, this.open);
    let cursor = this.cursor;
    if (cursor) {
      const position = cursor.id === null ? -1 : rows.positionOf(cursor.folder, cursor.id);
      if (position >= 0) cursor = { ...cursor, position };
      const total = cursor.folder === TOP ? this.tops.length : (this.folders.get(cursor.folder)?.total ?? 0);
      if (cursor.position >= total) cursor = { ...cursor, position: Math.max(0, total - 1), id: null };
    }
    this.cursor = cursor;
    let active = cursor ? rows.indexOf(cursor.folder, cursor.position) : -1;
    const node = active < 0 ? undefined : rows.at(active)?.node;
    if (cursor && node?.entry && cursor.id !== node.id) this.cursor = { ...cursor, id: node.id };
    if (active < 0 && rows.length > 0) active = 0;
    this.seen = { rows, cursor: this.cursor, active };
    for (const watcher of this.watchers) watcher();
    this.fetchRange();
  }
}

export function cursorOf(node: FileNode): Cursor {
  return { folder: node.folder, position: node.position, id: node.entry ? node.id : null };
}

function emptyFolder(filter: string): Folder {
  return { total: null, pages: new Map(), stale: new Set(), filter, error: null };
}

function ancestorsWithin(place: Place, top: Place): Place[] | null {
  if (place.kind === "store" && top.kind === "store" && place.project !== top.project) return null;
  const folders = ancestorsOf(place, top.path);
  return folders.length > 0 ? folders : null;
}

async function browse(
  place: Place,
  page: number,
  filter: string,
  sort: Order,
): Promise<{ entries: Entry[]; total: number }> {
  const range = { offset: page * PAGE, limit: PAGE, filter };
  if (place.kind === "local") {
    const { entries, total } = await call("browse_folder", { path: place.path, ...range, sort });
    return {
      total,
      entries: entries.map((entry) => ({
        place: { kind: "local", path: entry.path },
        name: entry.name,
        type: entry.type,
        access: entry.access,
        ...(entry.size_bytes === undefined ? {} : { sizeBytes: entry.size_bytes }),
        ...(entry.modified_at ? { modifiedAt: entry.modified_at } : {}),
      })),
    };
  }
  const { entries, total } = await call("browse_project", { project: place.project, path: place.path, ...range });
  return {
    total,
    entries: entries.map((entry) => ({
      place: { ...place, path: entry.path },
      name: entry.name,
      type: entry.type,
      ...(entry.size_bytes === undefined ? {} : { sizeBytes: entry.size_bytes }),
      ...(entry.modified_at ? { modifiedAt: entry.modified_at } : {}),
    })),
  };
}

/** The tree of this tab. */
export const fileTree = new FileTree();
