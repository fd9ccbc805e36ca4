/** Pure: changes as groups of one program and one time. */
import type { ListedChange } from "@/api/entries";

const GAP_MS = 5 * 60_000;
const MAX_IN_GROUP = 1000;

/** Changes of one program, each within five minutes of the next; newest first. */
export interface ChangeGroup {
  /** The id of its oldest change, which stays when newer ones join. */
  id: string;
  client: string;
  isYours: boolean;
  changes: ListedChange[];
}

/** Return changes, which come newest first, as groups; `net_changes` takes no more ids than a group holds. */
export function groupChanges(changes: readonly ListedChange[]): ChangeGroup[] {
  const groups: ChangeGroup[] = [];
  for (const change of changes) {
    const group = groups.at(-1);
    if (group && belongs(group, change)) {
      group.changes.push(change);
      group.id = change.change_id;
    } else {
      groups.push({ id: change.change_id, client: change.client, isYours: change.is_yours, changes: [change] });
    }
  }
  return groups;
}

function belongs(group: ChangeGroup, change: ListedChange): boolean {
  const oldest = group.changes.at(-1);
  if (!oldest || group.changes.length >= MAX_IN_GROUP) return false;
  if (group.isYours !== change.is_yours || (!change.is_yours && group.client !== change.client)) return false;
  return Date.parse(oldest.at) - Date.parse(change.at) <= GAP_MS;
}

/** Return what a group did in a few words: `8 edits, 2 moves`. */
export function summaryOf(group: ChangeGroup, wordOf: (kind: string) => string): string {
  const counts = new Map<string, number>();
  for (const change of group.changes) {
    const word = wordOf(change.kind);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return [...counts].map(([word, count]) => (count === 1 ? `1 ${word}` : `${count} ${pluralOf(word)}`)).join(", ");
}

function pluralOf(word: string): string {
  if (word === "undo") return "undos";
  return word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`;
}

/** Return the changes of a group that can still be undone, newest first. */
export function undoable(group: ChangeGroup): ListedChange[] {
  return group.changes.filter((change) => change.undoable && change.status !== "UNDONE");
}

/** Return the changes that "all of the group" takes back: an undo within it goes with what it undid. */
export function allOf(group: ChangeGroup): ListedChange[] {
  const ids = new Set(group.changes.map((change) => change.change_id));
  return undoable(group).filter((change) => change.undoes === undefined || !ids.has(change.undoes));
}
