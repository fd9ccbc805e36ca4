import { expect, test } from "vitest";
import { conflictParts, resolve, type Choice } from "./conflict";
import { contentKind, editorText, lineOfByte } from "./content";
import { languageOf } from "@/shared/code/languages";
import { ancestorsOf, childOf, idOf, paramsOf, parentOf, placeOf, type Place } from "./place";
import { makeRows, PAGE, TOP, type Entry, type Folder } from "./rows";
import { bestLines, exactMarks, lineStart, markText, wordMarks } from "./search";

const local = (path: string): Place => ({ kind: "local", path });
const entry = (path: string, type: Entry["type"] = "file"): Entry => ({ place: local(path), name: path.slice(path.lastIndexOf("/") + 1), type });
const folder = (total: number, pages: [number, Entry[]][]): Folder => ({ total, pages: new Map(pages), stale: new Set(), filter: "", error: null });

test("a place and its address name each other, also where a name is not UTF-8", () => {
  for (const place of [local("/a/b?c#d%41"), local("file:///a/%FF"), { kind: "store", project: "p", path: "/a" } satisfies Place]) {
    expect(placeOf(new URLSearchParams(new URLSearchParams(paramsOf(place)).toString()))).toEqual(place);
  }
  expect(placeOf(new URLSearchParams("at=javascript:alert(1)"))).toBeNull();
  expect(parentOf(local("/a/b"))).toEqual(local("/a"));
  expect(parentOf(local("file:///a/c%20d/%FF"))).toEqual(local("/a/c d"));
  expect(parentOf(local("file:///a/%FF/b"))).toEqual(local("file:///a/%FF"));
  expect(childOf(local("file:///a/%FF"), "n m")).toEqual(local("file:///a/%FF/n%20m"));
  expect(ancestorsOf(local("/r/a/b/c"), "/r").map(idOf)).toEqual(["/r", "/r/a", "/r/a/b"]);
  expect(ancestorsOf(local("/elsewhere"), "/r")).toEqual([]);
});

test("rows of a folder with 100,000 entries are found by their index, with what is open beneath them", () => {
  const big = folder(100_000, [[0, [entry("/r/a", "directory"), entry("/r/b")]], [499, [entry("/r/y", "directory")]]]);
  const folders = new Map([["/r", big], ["/r/a", folder(2, [[0, [entry("/r/a/1"), entry("/r/a/2")]]])]]);
  const rows = makeRows([entry("/r", "root"), entry("/s", "root")], folders, new Set(["/r", "/r/a", "/r/y"]));
  expect(rows.length).toBe(2 + 100_000 + 2 + 1);
  expect([0, 1, 2, 3, 4, 5].map((index) => rows.at(index)?.node.id)).toEqual(["/r", "/r/a", "/r/a/1", "/r/a/2", "/r/b", "/r\n2"]);
  expect(rows.at(2)).toMatchObject({ depth: 2, parent: 1, position: 1, setSize: 2 });
  expect(rows.at(4)).toMatchObject({ depth: 1, parent: 0, position: 2, setSize: 100_000 });
  const open = rows.indexOf("/r", 499 * PAGE);
  expect(rows.at(open)?.node.id).toBe("/r/y");
  expect(rows.at(open + 1)?.node.note).toBe("Loading");
  expect(rows.at(rows.length - 1)?.node.id).toBe("/s");
  expect(rows.indexOf(TOP, 1)).toBe(rows.length - 1);
  expect(rows.positionOf("/r", "/r/y")).toBe(499 * PAGE);
  expect([rows.at(-1), rows.at(rows.length)]).toEqual([undefined, undefined]);
});

test("what could run is text; only raster images, sound and video are media", () => {
  expect(contentKind({ media_type: "image/svg+xml", text: "<svg/>" })).toBe("text");
  expect(contentKind({ media_type: "text/html", text: "<b>" })).toBe("text");
  expect(contentKind({ media_type: "image/png", text: null })).toBe("image");
  expect(contentKind({ media_type: "application/zip" })).toBe("none");
  expect([languageOf("a.PY", 1), languageOf("Makefile", 1), languageOf("a.json", 3e6)]).toEqual(["python", null, null]);
});

test("line ends come back as they were", () => {
  const crlf = editorText("a\r\nb\r\n", "store");
  expect([crlf.text, crlf.restore("a\nx\n")]).toEqual(["a\nb\n", "a\r\nx\r\n"]);
  expect(editorText("a\r\nb\n", "store").text).toBe("a\r\nb\n");
  expect(editorText("a\r\nb\n", "local").text).toBe("a\nb\n");
  expect([lineOfByte("ä\nb", 2), lineOfByte("ä\nb", 3)]).toEqual([1, 2]);
});

test("a conflict asks only where both sides changed the same lines", () => {
  const parts = conflictParts("a\nb\nc\nd\ne\n", "A\nb\nc\nmy\ne\n", "a\nb\nC\nx\ny\nthe\ne\n");
  const choices = parts.flatMap((part) => (part.type === "choice" ? [part] : []));
  expect(choices.map((part) => part.suggested)).toEqual(["mine", null]);
  const chosen = new Map<number, Choice>();
  expect(resolve(parts, chosen)).toBeNull();
  const hard = choices[1]?.id ?? 0;
  expect(resolve(parts, chosen.set(hard, "theirs"))).toBe("A\nb\nC\nx\ny\nthe\ne\n");
  expect(resolve(parts, chosen.set(hard, "both"))).toBe("A\nb\nC\nx\ny\nthe\nc\nmy\ne\n");
});

test("words are marked with their endings, exact text as it is", () => {
  const shown = (text: string, pattern: RegExp | null) =>
    markText(text, pattern).map((piece) => (piece.isMarked ? `[${piece.text}]` : piece.text)).join("");
  expect(shown("The plans of planning, explained", wordMarks("plan"))).toBe("The [plans] of [planning], explained");
  expect(shown("a(b) A(B)", exactMarks("a(b)"))).toBe("[a(b)] [A(B)]");
  expect(shown("a", wordMarks("?"))).toBe("a");
  expect(bestLines("one\ntwo plan\nthree\n", wordMarks("plan"))).toEqual({ first: 1, lines: ["two plan", "three"] });
  expect([lineStart("ä\nb\nc", 0), lineStart("ä\nb\nc", 2)]).toEqual([0, 5]);
});
