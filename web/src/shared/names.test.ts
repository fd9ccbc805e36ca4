import { expect, test } from "vitest";
import { countHidden, displayName, isVisible, lineParts, placeOf, shortenHome, splitPath } from "./names";
import vectors from "./names.vectors.json";

test.each(vectors.names)("a name is shown as the server shows it: $shown", ({ name, shown }) => {
  expect(displayName(name)).toBe(shown);
});

test.each(vectors.characters)("$code is seen or not as on the server", ({ code, isSeen }) => {
  expect(isVisible(String.fromCodePoint(code))).toBe(isSeen);
});

test("a character that is not seen stands in a line by its code point", () => {
  expect(lineParts("a\u202Eb\tc")).toEqual([
    { text: "a", isHidden: false },
    { text: "U+202E", isHidden: true },
    { text: "b\tc", isHidden: false },
  ]);
});

test("line ends and tabs are no hidden characters, zero-width spaces are", () => {
  expect(countHidden("a\r\nb\tc\n")).toBe(0);
  expect(countHidden("a\u200B\nb\uFEFF")).toBe(2);
});

test("a path is its folder and its name", () => {
  expect(splitPath("/home/ann/notes.md")).toEqual({ folder: "/home/ann/", name: "notes.md" });
  expect(splitPath("notes.md")).toEqual({ folder: "", name: "notes.md" });
});

test("a folder is named by the known directory that it lies in, and otherwise from the home folder on", () => {
  const roots = ["/home/kim/shop", "/home/kim/shop/api", "/srv"];
  expect(placeOf("/home/kim/shop/docs/", roots, "/home/kim")).toBe("shop/docs/");
  expect(placeOf("/home/kim/shop/api/v1/", roots, "/home/kim")).toBe("api/v1/");
  expect(placeOf("/home/kim/shopping/", roots, "/home/kim")).toBe("~/shopping/");
  expect(placeOf("/srv/", roots, "/home/kim")).toBe("srv/");
  expect(placeOf("/etc/", [...roots, "/"], "")).toBe("/etc/");
  expect(shortenHome("/home/kim", "/home/kim")).toBe("~");
  expect(shortenHome("/home/kimberley/x", "/home/kim")).toBe("/home/kimberley/x");
});
