import { expect, test } from "vitest";
import { slotsToRead } from "./slots";
import { offerFolders } from "./folders";
import { decisionOn, NOTHING_STAGED, others, stage } from "./staging";
import { listTargets, nestFolders, pagesOf } from "./tree";
import { measuresLine, outcome, promise, shellWord, standing } from "./words";

const total = (folder: string, files: number) => ({ folder, files, confidence: 0.9, is_new: false, done: 1 });

test("targets keep their order and whole paths; a tree nests them, adds what lies between and sums up", () => {
  expect(listTargets([total("b/c", 2), total("a", 1)]).map((node) => [node.name, node.files])).toEqual([["b/c", 2], ["a", 1]]);
  const { roots, own } = nestFolders([total("", 5), total("b/c", 2), total("a", 1), total("b/c/d", 3)]);
  expect(own).toBe(5);
  expect(roots.map((node) => [node.path, node.own, node.files])).toEqual([["a", 1, 1], ["b", 0, 5]]);
  expect(roots[1]?.folders[0]?.folders.map((node) => [node.name, node.path])).toEqual([["d", "b/c/d"]]);
  expect(pagesOf(150, 420, 200)).toEqual([0, 1, 2]);
});

test("corrections wait, go out together, and a later decision wins until the answer has come", () => {
  let state = stage(NOTHING_STAGED, { type: "stage", addresses: ["a", "b"], folder: "Taxes" });
  state = stage(state, { type: "stage", addresses: ["b"], folder: null });
  expect([...state.staged]).toEqual([["a", "Taxes"], ["b", null]]);
  state = stage(state, { type: "send" });
  expect(state.staged.size).toBe(0);
  state = stage(state, { type: "stage", addresses: ["a"], folder: "Bills" });
  expect(stage(state, { type: "send" })).toBe(state);
  expect([decisionOn(state, "a"), decisionOn(state, "b"), decisionOn(state, "c")]).toEqual(["Bills", null, undefined]);
  state = stage(state, { type: "end" });
  expect([decisionOn(state, "a"), decisionOn(state, "b")]).toEqual(["Bills", undefined]);
  const changed = [{ path: "a", to: "Bills/a" }, { path: "z", before: "Bills/z" }];
  expect(others(changed, new Map([["a", "Bills"]]))).toEqual([{ path: "z", before: "Bills/z" }]);
});

test("folders are offered by what was typed, a new one when none has the name, and to leave the file", () => {
  const ids = (typed: string) => offerFolders(typed, ["Photos", "Invoices", "Old Invoices"]).map((choice) => choice.id);
  expect(ids("")).toEqual(["folder:Photos", "folder:Invoices", "folder:Old Invoices", "leave"]);
  expect(ids("inv")).toEqual(["folder:Invoices", "folder:Old Invoices", "new"]);
  expect(ids("invoices")).toEqual(["folder:Invoices", "folder:Old Invoices"]);
  expect(offerFolders("/Dinner/Cakes/", []).map((choice) => choice.folder)).toEqual(["Dinner/Cakes"]);
  expect(ids("leave")).toEqual(["new", "leave"]);
});

test("a plan says where it stands in the words of the commands", () => {
  expect(outcome({ DONE: 1203, SKIPPED: 1 })).toBe("1,203 moved, 1 stayed");
  expect(outcome({ UNDONE: 4 })).toBe("4 came back");
  expect(outcome({})).toBe("0 moved");
  expect(standing("CREATED", {}, 3, false)).toEqual({ text: "waits for you", waits: true });
  expect(standing("RUNNING", { DONE: 2 }, 3, false).text).toBe("interrupted: 2 moved");
  expect(standing("RUNNING", { DONE: 2 }, 3, true).text).toBe("at work");
  expect(promise(1204, 14, 2)).toBe("1,204 files go to 14 folders, 2 of them new.");
  expect(promise(1, 1, 1)).toBe("1 file goes to 1 folder, a new one.");
  expect([shellWord("/a/b-1.txt"), shellWord("/my files/it's")]).toEqual(["/a/b-1.txt", "'/my files/it'\\''s'"]);
  const measures = { files: 10, cache_hit_rate: 0, tokens_saved: 5, safety_skips: 2, do_nothing_ratio: 0.3 };
  expect(measuresLine(measures)).toBe("10 files scanned, 30 % stay, 2 skipped");
});

test("one list is read from its first page on, also when folders were open before", () => {
  const shown = [
    { folder: "Video", page: 0 },
    { folder: null, page: 3 },
  ];
  expect(slotsToRead(shown, true)).toEqual([
    { folder: null, page: 0 },
    { folder: null, page: 3 },
  ]);
  expect(slotsToRead(shown, false)).toEqual([{ folder: "Video", page: 0 }]);
});
