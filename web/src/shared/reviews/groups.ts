/** Pure: how open reviews stand in the inbox. */
import type { PendingReview } from "@/api/entries";

const GROUP_MS = 120_000;

/** Return whether every word that was typed stands in one of the names. */
export function isNamedBy(typed: string, ...names: readonly string[]): boolean {
  const all = names.join("\n").toLowerCase();
  return typed.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/** Reviews of one program that came within two minutes; most are alone. */
export interface ReviewGroup {
  id: string;
  client: string;
  reviews: PendingReview[];
}

export function waitsForYou(review: PendingReview): boolean {
  return review.user_action === "PENDING";
}

/** Return the reviews as groups, newest first; a review whose program is not known stands alone. */
export function groupReviews(reviews: readonly PendingReview[]): ReviewGroup[] {
  const newestFirst = [...reviews].sort((left, right) => Date.parse(right.created_at) - Date.parse(left.created_at));
  const groups: ReviewGroup[] = [];
  for (const review of newestFirst) {
    const client = review.client;
    const group = groups.find(
      (each) => client !== "" && each.client === client && spanOf([...each.reviews, review]) <= GROUP_MS,
    );
    if (group) group.reviews.push(review);
    else groups.push({ id: review.review_id, client, reviews: [review] });
  }
  return groups;
}

function spanOf(reviews: readonly PendingReview[]): number {
  const times = reviews.map((review) => Date.parse(review.created_at));
  return Math.max(...times) - Math.min(...times);
}

/** Return the group that holds a review. */
export function groupOf(reviews: readonly PendingReview[], id: string): ReviewGroup | undefined {
  return groupReviews(reviews).find((group) => group.reviews.some((review) => review.review_id === id));
}
