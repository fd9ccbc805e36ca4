/** Pure: the decision that is sent. */
import type { ArgumentsOf } from "@/api/client";
import type { ShownReview } from "@/api/entries";
import type { Hunk } from "@/shared/diff/hunks";
import { takenHunks, type Marks } from "@/shared/reviews/marks";

export type DecideArguments = ArgumentsOf<"decide_review">;

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

/** Return whether a text has line ends of one kind only, so that an editor may show it without them. */
export function hasUniformLineEnds(text: string): boolean {
  return !text.includes("\r") || !(/\r(?!\n)/.test(text) || /(?:^|[^\r])\n/.test(text));
}
