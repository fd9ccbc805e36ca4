import { expect, test } from "vitest";
import type { PendingReview } from "@/api/entries";
import { groupOf, groupReviews, isNamedBy } from "./groups";

function review(id: string, client: string, seconds: number): PendingReview {
  const at = new Date(Date.UTC(2026, 10, 19, 12, 0, seconds)).toISOString();
  return { review_id: id, client, client_version: "1", note: "", kind: "edit", path: `/p/${id}`, root: "/p", user_action: "PENDING", round: 1, is_new_file: false, created_at: at, expires_at: at };
}

test("reviews of one program within two minutes are one group; the newest group comes first", () => {
  const groups = groupReviews([review("a", "claude", 0), review("b", "claude", 100), review("c", "claude", 170), review("d", "other", 90)]);
  expect(groups.map((group) => group.reviews.map((each) => each.review_id))).toEqual([["c", "b"], ["d"], ["a"]]);
});

test("reviews of programs that are not known stand alone", () => {
  expect(groupReviews([review("a", "", 0), review("b", "", 1)])).toHaveLength(2);
  expect(groupOf([review("a", "x", 0), review("b", "x", 1)], "a")?.reviews).toHaveLength(2);
});

test("a filter asks for every word, in any of the names", () => {
  expect(isNamedBy("", "/p/a")).toBe(true);
  expect(isNamedBy("NOTES claude", "/p/notes.md", "claude-code")).toBe(true);
  expect(isNamedBy("notes other", "/p/notes.md", "claude-code")).toBe(false);
});
