import { describe, expect, it } from "vitest";
import { browserOf } from "./browsers";
import { httpSnippet } from "./connect";
import { areSame, faultsOf, fullRule, moved, NEW_RULE, scopeOf, type Rule } from "./policy";

const A: Rule = { ...NEW_RULE, glob: "a" };
const B: Rule = { ...NEW_RULE, glob: "b" };
const C: Rule = { ...NEW_RULE, glob: "c" };

describe("the rules of the policy", () => {
  it("are moved one place, and stay at the ends", () => {
    expect(moved([A, B, C], 0, 1)).toEqual([B, A, C]);
    expect(moved([A, B, C], 2, -1)).toEqual([A, C, B]);
    expect(moved([A, B, C], 0, -1)).toEqual([A, B, C]);
    expect(moved([A, B, C], 2, 1)).toEqual([A, B, C]);
    expect(areSame([A, B], [A, B])).toBe(true);
    expect(areSame([A, B], [B, A])).toBe(false);
  });

  it("say what they are for", () => {
    expect(scopeOf(fullRule({ access: "deny", glob: ".env" }))).toBe(".env in each allowed directory, for every client");
    expect(scopeOf(fullRule({ access: "deny", root: "/x", client: "claude-*" }))).toBe("all of /x, for clients claude-*");
  });

  it("are told where they cannot be meant", () => {
    expect(faultsOf(A)).toEqual({});
    expect(Object.keys(faultsOf({ ...A, root: "x", glob: "!y" }))).toEqual(["root", "glob"]);
    expect(Object.keys(faultsOf({ ...A, root: "~/x", glob: "a/../b" }))).toEqual(["glob"]);
  });
});

describe("a browser", () => {
  it("is named in a few words", () => {
    expect(browserOf("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")).toBe("Firefox 140 on Linux");
    expect(browserOf("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0")).toBe("Edge 141 on Windows");
    expect(browserOf("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15")).toBe("Safari 18 on macOS");
    expect([browserOf(""), browserOf("curl/8")]).toEqual(["an unknown program", "curl/8"]);
  });
});

describe("the snippet of the HTTP door", () => {
  it("is JSON that names the address, and a word in the place of the key", () => {
    expect(JSON.parse(httpSnippet("http://127.0.0.1:8124", "YOUR_KEY"))).toEqual({
      mcpServers: { holdfast: { type: "http", url: "http://127.0.0.1:8124/mcp", headers: { Authorization: "Bearer YOUR_KEY" } } },
    });
  });
});
