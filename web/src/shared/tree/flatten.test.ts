import { expect, test } from "vitest";
import { flatten, moveOf, type TreeNode } from "./flatten";

const folder = (id: string): TreeNode => ({ id, name: id, isFolder: true });
const file = (id: string): TreeNode => ({ id, name: id, isFolder: false });
const children: Record<string, TreeNode[]> = { docs: [folder("sub"), file("a.md")], sub: [file("deep.md")] };
const rowsOf = (...open: string[]) => flatten([folder("docs"), file("z.md")], new Set(open), (id) => children[id]);

test("rows are what is open, in order, with their place among their siblings", () => {
  expect(rowsOf("docs", "sub").map((row) => [row.node.id, row.depth, row.position, row.setSize])).toEqual([
    ["docs", 0, 1, 2], ["sub", 1, 1, 2], ["deep.md", 2, 1, 1], ["a.md", 1, 2, 2], ["z.md", 0, 2, 2],
  ]);
  expect(rowsOf().map((row) => row.node.id)).toEqual(["docs", "z.md"]);
});

test("right opens a folder, then enters it; left goes to the parent, then closes it", () => {
  expect(moveOf("ArrowRight", 0, rowsOf(), 10)).toEqual({ type: "open", index: 0 });
  expect(moveOf("ArrowRight", 0, rowsOf("docs"), 10)).toEqual({ type: "focus", index: 1 });
  expect(moveOf("ArrowLeft", 2, rowsOf("docs"), 10)).toEqual({ type: "focus", index: 0 });
  expect(moveOf("ArrowLeft", 0, rowsOf("docs"), 10)).toEqual({ type: "close", index: 0 });
  expect(moveOf("End", 0, rowsOf("docs"), 10)).toEqual({ type: "focus", index: 3 });
  expect(moveOf("x", 0, rowsOf(), 10)).toBeNull();
});

test("with no row chosen a key of the tree chooses the first, and every other key is left to the page", () => {
  expect(moveOf("ArrowDown", -1, rowsOf(), 10)).toEqual({ type: "focus", index: 0 });
  expect(moveOf("Tab", -1, rowsOf(), 10)).toBeNull();
  expect(moveOf("R", -1, rowsOf(), 10)).toBeNull();
});
