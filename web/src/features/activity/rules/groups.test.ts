import { describe, expect, it } from "vitest";
import type { ListedChange } from "@/api/entries";
import { allOf, groupChanges, summaryOf } from "./groups";

function change(id: string, minute: number, more: Partial<ListedChange> = {}): ListedChange {
  return {
    change_id: id, kind: "edit", status: "EXECUTED", client: "desk", client_version: "1", is_yours: false,
    at: new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString(), path: `/r/${id}`, entries: 1, size_bytes: 1, undoable: true,
    ...more,
  };
}

describe("changes in groups", () => {
  it("join those of one program while each is within five minutes of the next", () => {
    const groups = groupChanges([change("d", 30), change("c", 20), change("b", 16), change("a", 12)]);
    expect(groups.map((group) => group.changes.map((each) => each.change_id))).toEqual([["d"], ["c", "b", "a"]]);
  });

  it("keep their id when a newer change joins", () => {
    const before = groupChanges([change("b", 2), change("a", 1)]);
    const after = groupChanges([change("c", 3), change("b", 2), change("a", 1)]);
    expect(after.map((group) => group.id)).toEqual(before.map((group) => group.id));
  });

  it("keep programs apart, and yours together whatever the command was called", () => {
    const groups = groupChanges([
      change("e", 5, { is_yours: true, client: "console" }),
      change("d", 4, { is_yours: true, client: "holdfast" }),
      change("c", 3, { client: "other" }),
      change("b", 2),
    ]);
    expect(groups.map((group) => group.changes.length)).toEqual([2, 1, 1]);
  });

  it("hold no more changes than one question may name", () => {
    const groups = groupChanges(Array.from({ length: 1500 }, (_, at) => change(`c${at}`, 0)));
    expect(groups.map((group) => group.changes.length)).toEqual([1000, 500]);
  });

  it("are summed up by what was done", () => {
    const [group] = groupChanges([change("c", 2, { kind: "delete" }), change("b", 1), change("a", 1)]);
    expect(group && summaryOf(group, (kind) => kind)).toBe("1 delete, 2 edits");
  });

  it("leave an undo out of all when what it undid is among them", () => {
    const [group] = groupChanges([
      change("u", 3, { kind: "undo", undoes: "b" }),
      change("c", 2, { undoable: false }),
      change("b", 1, { status: "UNDONE" }),
      change("a", 0),
    ]);
    expect(group && allOf(group).map((each) => each.change_id)).toEqual(["a"]);
  });
});
