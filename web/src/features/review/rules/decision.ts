/** Pure: what a person has decided so far on a review, and the decision that is sent. */
import type { ArgumentsOf } from "@/api/client";
import type { ShownReview } from "@/api/entries";
import type { Hunk } from "@/shared/diff/hunks";

export type DecideArguments = ArgumentsOf<"decide_review">;

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

/** Return the approval of what is shown, or of the hunks that are taken. */
export function approval(review: ShownReview, hunks: readonly Hunk[], marks: Marks): DecideArguments {
  const taken = takenHunks(hunks, marks);
  return {
    ...basis(review),
    decision: "approve",
    ...(taken.length < hunks.length ? { hunks: taken.map((hunk) => hunk.hash) } : {}),
  };
}

/** Return the approval of a text of the person's own. */
export function approvalOfText(review: ShownReview, text: string): DecideArguments {
  return { ...basis(review), decision: "approve", text };
}

/** Return the request for another version, by words, by a text, or both. */
export function revision(review: ShownReview, reason: string, text?: string): DecideArguments {
  return {
    ...basis(review),
    decision: "revise",
    ...(reason ? { reason } : {}),
    ...(text === undefined ? {} : { text }),
  };
}

export function rejection(review: ShownReview, reason: string): DecideArguments {
  return { ...basis(review), decision: "reject", ...(reason ? { reason } : {}) };
}

function basis(review: ShownReview): Pick<DecideArguments, "review_id" | "shown_hash" | "channel"> {
  return { review_id: review.review_id, shown_hash: review.shown_hash, channel: "console" };
}

/** Return whether the person may still decide: a review that was sent back can be approved as it stands, too. */
export function isUndecided(review: Pick<ShownReview, "user_action">): boolean {
  return review.user_action === "PENDING" || review.user_action === "REVIEW";
}

/** Return whether a text has line ends of one kind only, so that an editor may show it without them. */
export function hasUniformLineEnds(text: string): boolean {
  return !text.includes("\r") || !(/\r(?!\n)/.test(text) || /(?:^|[^\r])\n/.test(text));
}
