import { expect, test } from "vitest";
import { colourLines } from "../code/colours";
import { colourPieces, spansOf } from "./colours";

test("a line is cut at its colours, and what changed has none", () => {
  const spans = [
    { from: 0, to: 6, kind: "keyword" },
    { from: 7, to: 10, kind: "string" },
  ];
  const pieces = [
    { text: "return ", isChanged: false },
    { text: "'a'", isChanged: true },
    { text: " + b", isChanged: false },
  ];
  expect(colourPieces(pieces, spans)).toEqual([
    { text: "return", isChanged: false, kind: "keyword" },
    { text: " ", isChanged: false, kind: "" },
    { text: "'a'", isChanged: true, kind: "" },
    { text: " + b", isChanged: false, kind: "" },
  ]);
  expect(colourPieces([{ text: "plain", isChanged: false }], [])).toEqual([{ text: "plain", isChanged: false, kind: "" }]);
});

test("a text is coloured line by line, also where one word goes over several lines", async () => {
  const lines = await colourLines('def f():\n    """one\n    two"""\n    return 1\n', "python");
  expect(lines[0]?.[0]).toEqual({ from: 0, to: 3, kind: "keyword" });
  expect(lines[1]).toEqual([{ from: 4, to: 10, kind: "string" }]);
  expect(lines[2]).toEqual([{ from: 0, to: 10, kind: "string" }]);
  expect(lines[3]?.map((span) => span.kind)).toEqual(["keyword", "number"]);
  expect(spansOf({ kind: "add", after: 4, text: "" }, { before: [], after: lines })).toBe(lines[3]);
  expect(spansOf({ kind: "remove", before: 9, text: "" }, { before: [], after: lines })).toEqual([]);
});
