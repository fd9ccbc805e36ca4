/** Pure: what a person has marked so far on the hunks of a review. */
import type { ShownReview } from "@/api/entries";
import type { Hunk } from "../diff/hunks";

/** Hunks that are left out and hunks that were on screen, by their hashes. */
export interface Marks {
  leftOut: ReadonlySet<string>;
  seen: ReadonlySet<string>;
}

export const NO_MARKS: Marks = { leftOut: new Set(), seen: new Set() };

export type MarkAction =
  | { type: "toggleTaken"; hash: string }
  | { type: "toggleSeen"; hash: string }
  | { type: "saw"; hashes: readonly string[] }
  | { type: "reset" };

export function mark(marks: Marks, action: MarkAction): Marks {
  switch (action.type) {
    case "toggleTaken":
      return { ...marks, leftOut: toggle(marks.leftOut, action.hash) };
    case "toggleSeen":
      return { ...marks, seen: toggle(marks.seen, action.hash) };
    case "saw":
      return action.hashes.every((hash) => marks.seen.has(hash))
        ? marks
        : { ...marks, seen: new Set([...marks.seen, ...action.hashes]) };
    case "reset":
      return NO_MARKS;
  }
}

function toggle(hashes: ReadonlySet<string>, hash: string): ReadonlySet<string> {
  const toggled = new Set(hashes);
  if (!toggled.delete(hash)) toggled.add(hash);
  return toggled;
}

/** Return the words on the button that approves. */
export function approveLabel(hunks: readonly Hunk[], marks: Marks): string {
  const taken = takenHunks(hunks, marks).length;
  return taken === hunks.length ? "Approve" : `Approve ${taken} of ${hunks.length}`;
}

export function takenHunks(hunks: readonly Hunk[], marks: Marks): Hunk[] {
  return hunks.filter((hunk) => !marks.leftOut.has(hunk.hash));
}

/** Return how many of the hunks that would be approved were not on screen to their end. */
export function countUnseen(hunks: readonly Hunk[], marks: Marks): number {
  return takenHunks(hunks, marks).filter((hunk) => !marks.seen.has(hunk.hash)).length;
}

/** Return whether the person may still decide: a review that was sent back can be approved as it stands, too. */
export function isUndecided(review: Pick<ShownReview, "user_action">): boolean {
  return review.user_action === "PENDING" || review.user_action === "REVIEW";
}
