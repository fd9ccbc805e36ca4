import { expect, test } from "vitest";
import { changedRuns, makeModel, makeRows, parseHunk, textRanges } from "./hunks";
import { markWords } from "./words";

const before = Array.from({ length: 30 }, (_, at) => `line ${at + 1}\n`).join("");
const after = before.replace("line 5\n", "line five\n").replace("line 20\n", "line 20\nline 20½\n");
const hunks = [
  { hash: "a", header: "@@ -2,7 +2,7 @@\n", body: " line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8\n" },
  { hash: "b", header: "@@ -18,6 +18,7 @@\n", body: " line 18\n line 19\n line 20\n+line 20½\n line 21\n line 22\n line 23\n" },
];

test("a hunk's lines carry the numbers of both texts", () => {
  const hunk = parseHunk(hunks[1] ?? { hash: "", header: "", body: "" }, 1);
  expect(hunk.lines[3]).toEqual({ kind: "add", after: 21, text: "line 20½" });
  expect(hunk.lines[4]).toEqual({ kind: "same", before: 21, after: 22, text: "line 21" });
  expect([hunk.added, hunk.removed, hunk.beforeFrom, hunk.afterTo]).toEqual([1, 0, 17, 24]);
});

test("an empty side is named by the line before it", () => {
  const hunk = parseHunk({ hash: "n", header: "@@ -0,0 +1,2 @@\n", body: "+a\n+b\n\\ No newline at end of file\n" }, 0);
  expect([hunk.beforeFrom, hunk.beforeTo, hunk.afterFrom, hunk.afterTo]).toEqual([0, 0, 0, 2]);
  expect(hunk.lines[1]).toEqual({ kind: "add", after: 2, text: "b", isUnended: true });
});

test("what is alike between hunks is a gap from three lines on, and its lines once it is open", () => {
  const model = makeModel(before, hunks);
  const closed = makeRows(model, "split", new Set());
  expect(closed.filter((row) => row.type === "gap").map((row) => row.count)).toEqual([9, 7]);
  const open = makeRows(model, "split", new Set(["gap-8"]));
  expect(open.filter((row) => row.type === "gap").map((row) => row.count)).toEqual([7]);
  expect(open.length).toBe(closed.length + 8);
});

test("removed and added lines stand side by side, and below each other in one column", () => {
  const model = makeModel(before, hunks);
  const pairs = makeRows(model, "split", new Set()).flatMap((row) => (row.type === "pair" ? [[row.left?.text, row.right?.text]] : []));
  expect(pairs).toContainEqual(["line 5", "line five"]);
  expect(pairs).toContainEqual([undefined, "line 20½"]);
  const kinds = makeRows(model, "unified", new Set()).flatMap((row) => (row.type === "line" ? [row.line.kind] : []));
  expect(kinds.slice(0, 6)).toEqual(["same", "same", "same", "same", "remove", "add"]);
});

test("hunks as ranges of characters cut both texts where they differ", () => {
  const model = makeModel(before, hunks);
  const ranges = textRanges(before, after, model.hunks);
  expect(ranges.map((range) => [before.slice(range.fromA, range.toA), after.slice(range.fromB, range.toB)])).toEqual([
    ["line 5\n", "line five\n"],
    ["", "line 20½\n"],
  ]);
  expect(changedRuns(model.hunks[0] ?? parseHunk({ hash: "", header: "@@ -1 +1 @@", body: "" }, 0))).toHaveLength(1);
});

test("words that differ are marked, and nothing where hardly a word is alike", () => {
  expect(markWords("let me see the plan", "let me see a plan")).toEqual([
    { text: "let me see ", isChanged: false },
    { text: "the", isChanged: true },
    { text: " plan", isChanged: false },
  ]);
  expect(markWords("completely other words", "nothing to share at all")).toBeNull();
});
