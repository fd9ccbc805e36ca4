import { describe, expect, it } from "vitest";
import { parseUnified } from "./unified";

describe("a unified diff", () => {
  it("is numbered on both sides and counted", () => {
    const { lines, added, removed } = parseUnified("--- a\n+++ b\n@@ -3,3 +3,4 @@\n one\n-two\n+2\n+2b\n three\n");
    expect([added, removed]).toEqual([2, 1]);
    expect(lines.map((line) => [line.kind, line.text, line.before, line.after])).toEqual([
      ["hunk", "lines 3–6", undefined, undefined],
      ["same", "one", 3, 3],
      ["removed", "two", 4, undefined],
      ["added", "2", undefined, 4],
      ["added", "2b", undefined, 5],
      ["same", "three", 5, 6],
    ]);
  });

  it("keeps lines of content that look like a head", () => {
    const { lines } = parseUnified("--- a\n+++ b\n@@ -1 +1 @@\n--- old\n+++ new\n");
    expect(lines.map((line) => [line.kind, line.text])).toEqual([
      ["hunk", "line 1"],
      ["removed", "-- old"],
      ["added", "++ new"],
    ]);
  });

  it("says that a line end is missing, and is empty for no diff", () => {
    expect(parseUnified("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n").lines[2]).toEqual({
      kind: "note",
      text: "No newline at end of file",
    });
    expect(parseUnified("")).toEqual({ lines: [], added: 0, removed: 0 });
  });
});
