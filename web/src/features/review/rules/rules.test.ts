import { expect, test } from "vitest";
import type { ShownReview } from "@/api/entries";
import { makeModel } from "@/shared/diff/hunks";
import { approveLabel, countUnseen, mark, NO_MARKS } from "@/shared/reviews/marks";
import { approval, hasUniformLineEnds } from "./decision";
import { lineHunks } from "@/shared/diff/line_diff";

const review = { review_id: "r", shown_hash: "h" } as ShownReview;
const hunk = (hash: string, line: number) => ({ hash, header: `@@ -${line} +${line} @@`, body: "-a\n+b\n" });
const { hunks } = makeModel("", [hunk("one", 1), hunk("two", 20), hunk("three", 40)]);

test("an approval names the hash that was on screen, and hunks only when some are left out", () => {
  expect(approval(review, hunks, NO_MARKS)).toEqual({ review_id: "r", shown_hash: "h", channel: "console", decision: "approve" });
  const marks = mark(NO_MARKS, { type: "toggleTaken", hash: "two" });
  expect(approval(review, hunks, marks).hunks).toEqual(["one", "three"]);
  expect(approveLabel(hunks, marks)).toBe("Approve 2 of 3");
});

test("only hunks that would be approved count as not seen", () => {
  let marks = mark(NO_MARKS, { type: "saw", hashes: ["one"] });
  expect(countUnseen(hunks, marks)).toBe(2);
  marks = mark(marks, { type: "toggleTaken", hash: "two" });
  expect(countUnseen(hunks, marks)).toBe(1);
  expect(mark(marks, { type: "saw", hashes: ["one"] })).toBe(marks);
});

test("an editor may hide line ends of one kind only", () => {
  expect(["a\nb", "a\r\nb\r\n", "a\r\nb\n", "a\rb"].map(hasUniformLineEnds)).toEqual([true, true, false, false]);
});

function patched(before: string, after: string): string {
  const lines = before.split("\n");
  for (const each of makeModel(before, lineHunks(before, after)).hunks.reverse()) {
    lines.splice(each.beforeFrom, each.beforeTo - each.beforeFrom, ...each.lines.filter((line) => line.kind !== "remove").map((line) => line.text));
  }
  return lines.join("\n");
}

test("the hunks of two texts turn the one into the other", () => {
  let seed = 7;
  const random = (limit: number) => (seed = (seed * 48_271) % 2_147_483_647) % limit;
  for (let round = 0; round < 200; round += 1) {
    const before = Array.from({ length: random(40) }, () => String(random(6))).join("\n");
    const lines = before.split("\n");
    for (let edit = random(6); edit > 0; edit -= 1) lines.splice(random(lines.length + 1), random(3), ...Array.from({ length: random(3) }, () => String(random(6))));
    const after = lines.join("\n");
    expect(patched(before, after)).toBe(after);
  }
});

test("texts that are alike have no hunk, and texts far apart have one", () => {
  expect(lineHunks("a\nb\n", "a\nb\n")).toEqual([]);
  const far = (word: string) => Array.from({ length: 3000 }, (_, at) => `${word} ${at}`).join("\n");
  expect(lineHunks(far("a"), far("b"))).toHaveLength(1);
});
