/** What a person does to a place, and its way back: one function for each, for local files and for the store. */
import { call } from "@/api/client";
import { showFault, showToast } from "@/shared/toasts";
import { quantity } from "@/shared/times";
import type { Place } from "./rules/place";

/** What was done: its way back, null where nothing had to be done. */
export interface Done {
  place: Place;
  undo: Undo | null;
}

/** The undo of a change: by its id for local files, by what it takes for the store. */
export type Undo = { changeId: string } | { run: () => Promise<void> };

const changed = (place: Place, changeId: string | null | undefined): Done => ({ place, undo: changeId ? { changeId } : null });

/** Save a text under the hash that was read; null creates the file. Returns its new hash too. */
export async function save(place: Place, text: string, hash: string | null, before: string): Promise<Done & { hash: string }> {
  const expected = hash === null ? {} : { expected_hash: hash };
  if (place.kind === "local") {
    const saved = await call("save_file", { path: place.path, text, ...expected });
    return { ...changed(place, saved.change_id), hash: saved.hash };
  }
  const where = { project: place.project, path: place.path };
  const saved = await call("save_stored_file", { ...where, text, ...expected });
  const undo = async () => {
    if (hash === null) await call("delete_stored", { ...where, expected_files: 1 });
    else await call("save_stored_file", { ...where, text: before, expected_hash: saved.hash });
    showToast("Undone.");
  };
  return { place, hash: saved.hash, undo: saved.hash === hash ? null : { run: undo } };
}

export async function makeFolder(place: Place): Promise<Done> {
  const made = await call("make_directory_for_person", { path: place.path });
  return changed({ kind: "local", path: made.path }, made.change_id);
}

export async function move(from: Place, to: Place): Promise<Done> {
  if (from.kind === "local" && to.kind === "local") {
    const moved = await call("move_for_person", { path: from.path, destination: to.path });
    return changed({ kind: "local", path: moved.path }, moved.change_id);
  }
  if (from.kind === "store" && to.kind === "store") {
    const { project } = from;
    await call("file_rename", { project, from_path: from.path, to_path: to.path });
    const undo = async () => {
      await call("file_rename", { project, from_path: to.path, to_path: from.path });
      showToast("Undone.");
    };
    return { place: to, undo: { run: undo } };
  }
  throw new Error("A file cannot be moved between this machine and the store.");
}

/** What a deletion would take. */
export interface Deletion {
  entries: number;
  files: number;
  directories: number;
  sizeBytes: number;
  canBeUndone: boolean;
  isFolder: boolean;
}

export async function previewDelete(place: Place, signal: AbortSignal): Promise<Deletion> {
  if (place.kind === "local") {
    const counted = await call("preview_delete", { path: place.path }, signal);
    const { entries, files, directories } = counted;
    const isFolder = counted.type === "directory";
    return { entries, files, directories, sizeBytes: counted.size_bytes, canBeUndone: counted.can_be_undone, isFolder };
  }
  const { files, size_bytes: sizeBytes } = await call("preview_stored_delete", { project: place.project, path: place.path }, signal);
  return { entries: files, files, directories: 0, sizeBytes, canBeUndone: true, isFolder: files !== 1 };
}

export async function remove(place: Place, counted: Deletion): Promise<Done> {
  if (place.kind === "local") {
    const tree = counted.isFolder ? { expected_entries: counted.entries } : {};
    const removed = await call("delete_for_person", { path: place.path, ...tree });
    return changed(place, removed.change_id);
  }
  const { project } = place;
  const { paths } = await call("delete_stored", { project, path: place.path, expected_files: counted.files });
  return { place, undo: { run: () => restoreDeleted(project, paths) } };
}

const BATCH = 1000;

/** Bring deleted files of a project back, and say which stayed away. */
export async function restoreDeleted(project: string, paths: readonly string[]): Promise<void> {
  let restored = 0;
  const stayed: string[] = [];
  for (let at = 0; at < paths.length; at += BATCH) {
    const done = await call("restore_stored", { project, paths: paths.slice(at, at + BATCH) });
    restored += done.restored;
    stayed.push(...done.stayed.map((each) => each.reason));
  }
  const rest = stayed.length > 0 ? `; ${stayed.length} stayed as they are: ${stayed[0] ?? ""}` : "";
  showToast(`${quantity(restored, "file")} brought back${rest}.`);
}

/** Run something a person asked for; a fault becomes a toast. Returns whether it was done. */
export async function attempt(what: string, run: () => Promise<void>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (error) {
    showFault(error, what);
    return false;
  }
}
