/** Pure: reviews in the words of the commands. */
import type { ListedChange, PendingReview } from "@/api/entries";

const KINDS: Record<string, string> = {
  edit: "edit", write: "write", review: "edit", move: "move", delete: "delete", create_directory: "new folder",
  mkdir: "new folder", undo: "undo", organise: "organise", restore: "restore",
};

/** Return what a review or change does, in a word or two. */
export function kindWord(kind: string): string {
  return KINDS[kind.toLowerCase()] ?? kind.toLowerCase().replace(/_/g, " ");
}

/** Return where a decided review stands: what the agent has yet to do. */
export function standing(review: Pick<PendingReview, "user_action">): string {
  if (review.user_action === "APPROVE") return "approved, not yet written";
  if (review.user_action === "REVIEW") return "sent back";
  return "waits for you";
}

/** Return who made a change. */
export function makerOf(change: Pick<ListedChange, "client" | "is_yours">): string {
  return change.is_yours ? "you" : change.client || "an agent";
}

/** Return the shortest id that the commands take. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}
