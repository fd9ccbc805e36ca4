import { describe, expect, it } from "vitest";
import { ApiFault } from "@/api/fault";
import { blocksOfFault, bytesOf, changesOf, estimateTokens, tokensOf } from "./answers";
import { commandOf, groupTools, type ToolFacts } from "./tools";

function tool(name: string, group: string, audience: "agent" | "person" = "agent"): ToolFacts {
  return { name, title: `Title of ${name}`, description: "", group, audience, effect: "read", idempotent: false, listed: true, schema: {} };
}

const TOOLS = [tool("read_text_file", "files"), tool("all_changes", "files", "person"), tool("edit_files", "files"), tool("file_read", "store")];
const ID = "0123456789abcdef0123456789abcdef";

describe("the list of tools", () => {
  const names = (typed: string, whose: string) => groupTools(TOOLS, typed, whose).map((group) => [group.title, ...group.tools.map((each) => each.name)]);

  it("has groups, the agents' first, those of the person alone named as such", () => {
    expect(names("", "all")).toEqual([["files", "read_text_file", "edit_files"], ["store", "file_read"], ["files, yours alone", "all_changes"]]);
    expect(names("", "agent").flat()).not.toContain("all_changes");
  });

  it("is filtered by every word that is typed", () => {
    expect(names("READ store", "agent")).toEqual([["store", "file_read"]]);
    expect(names("nothing such", "all")).toEqual([]);
  });
});

describe("a call as a command", () => {
  it("names the directories of an agent's tool and keeps every number as it was written", () => {
    expect(commandOf(tool("edit_files", "files"), '{ "path": "it\'s  a", "n": 12345678901234567890 }', ["/home/u/my project"])).toBe(
      `holdfast call edit_files --dir '/home/u/my project' --json '{"path":"it'\\''s  a","n":12345678901234567890}'`,
    );
    expect(commandOf(tool("all_changes", "files", "person"), "{}", ["/x"])).toBe("holdfast call all_changes");
    expect(commandOf(tool("file_read", "store"), '{"broken', ["/x"])).toBe(`holdfast call file_read --json '{"broken'`);
  });
});

describe("an answer", () => {
  it("has tokens by the server's rule", () => {
    expect(["", "abcd", "abcde", "äöü", "ab😀"].map(estimateTokens)).toEqual([0, 1, 2, 3, 2]);
    expect(tokensOf([{ type: "text", text: "abcd" }, { type: "image", data: "AAAA" }])).toBe(1);
    expect(["", "AAAA", "AAA=", "AA=="].map(bytesOf)).toEqual([0, 3, 2, 1]);
  });

  it("names the changes that it made, and takes no line of a file for one", () => {
    const answer = (data: unknown, ...text: string[]) => ({ data, text, content: [], duration_ms: 1 });
    expect(changesOf(answer(null, `sha256:00\nchange ${ID}`))).toEqual([ID]);
    expect(changesOf(answer(null, `change ${ID}\nand more`))).toEqual([]);
    expect(changesOf(answer({ files: [{ change_id: "a" }, { error: {} }, { change_id: "b" }] }))).toEqual(["a", "b"]);
    expect(changesOf(answer({ change_id: "undone", undo_id: "the undo" }))).toEqual(["the undo"]);
    expect(changesOf(answer({ change_id: null }))).toEqual([]);
  });

  it("of an error is what the protocol sends", () => {
    const fault = new ApiFault(404, "NOT_FOUND", "gone", false, { path: "a" });
    expect(blocksOfFault(fault)).toEqual([{ type: "text", text: '{"code":"NOT_FOUND","message":"gone","retryable":false,"path":"a"}' }]);
  });
});
