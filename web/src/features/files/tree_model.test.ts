import { beforeEach, expect, test, vi } from "vitest";
import { FileTree } from "./tree_model";
import type { Entry } from "./rules/rows";

const ROOT: Entry = { place: { kind: "local", path: "/p" }, name: "p", type: "root" };

/** Requests that wait for their answers, in the order in which they came. */
let requests: ((names: string[]) => Promise<void>)[] = [];

beforeEach(() => {
  requests = [];
  vi.stubGlobal("localStorage", { getItem: () => null });
  vi.stubGlobal("fetch", () => {
    return new Promise<Response>((resolve) => {
      requests.push(async (names) => {
        const entries = names.map((name) => ({ name, path: `/p/${name}`, type: "file" }));
        resolve(Response.json({ data: { entries, total: entries.length } }));
        await new Promise((done) => setTimeout(done, 5));
      });
    });
  });
});

function opened(): FileTree {
  const tree = new FileTree();
  tree.setTops([ROOT]);
  tree.setRange(0, 20);
  tree.setOpen(ROOT, true);
  return tree;
}

function names(tree: FileTree): string[] {
  const { rows } = tree.look();
  return Array.from({ length: rows.length }, (_, at) => rows.at(at)?.node.name ?? "");
}

test("looking again asks anew for what is shown", async () => {
  const tree = opened();
  await requests[0]?.(["a"]);
  expect(names(tree)).toEqual(["p", "a"]);
  tree.refresh();
  expect(requests).toHaveLength(2);
  await requests[1]?.(["a", "b"]);
  expect(names(tree)).toEqual(["p", "a", "b"]);
});

test("an answer that was asked for before a refresh does not stand for what is there after it", async () => {
  const tree = opened();
  tree.refresh();
  expect(requests).toHaveLength(2);
  await requests[1]?.(["a", "b"]);
  await requests[0]?.(["a"]);
  expect(names(tree)).toEqual(["p", "a", "b"]);
});
