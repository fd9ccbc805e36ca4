import { describe, expect, it } from "vitest";
import { keyOf, lineAndColumn, putAt, readJson, sayPath, writeJson } from "./json_text";

/** Return where a text is wrong, and why. */
function faultOf(text: string): string {
  const { fault } = readJson(text);
  return fault ? `${fault.line}:${fault.column} ${fault.message}` : "none";
}

describe("a JSON text", () => {
  it("is read with the place of every value", () => {
    const text = '{\n "files": [ {"path": "a"} , 12 ]\n}';
    const read = readJson(text);
    if (read.fault) throw new Error(read.fault.message);
    const shown = (...path: (string | number)[]) => {
      const place = read.places.get(keyOf(path));
      return place && text.slice(place.from, place.to);
    };
    expect(read.value).toEqual({ files: [{ path: "a" }, 12] });
    expect([shown("files", 0, "path"), shown("files", 1), shown("files", 0)]).toEqual(['"a"', "12", '{"path": "a"}']);
    expect(shown()).toBe(text);
  });

  it("says the line, the column and the reason where it is wrong", () => {
    expect(faultOf('{\n  "a": 1,\n}')).toBe('3:1 A name in double quotes is expected, found }');
    expect(faultOf('{"a" 1}')).toBe('1:6 A colon is expected after the name, found 1}');
    expect(faultOf('{"a": 1 "b": 2}')).toBe('1:9 A comma or } is expected, found "b": 2}');
    expect(faultOf("[1, 2")).toBe("1:6 A comma or ] is expected, found the end");
    expect(faultOf("{'a': 1}")).toBe('1:2 A name in double quotes is expected, found \'a\': 1}');
    expect(faultOf('{"a": tru}')).toBe('1:7 A value is expected, found tru}');
    expect(faultOf('{"a": "x\ny"}')).toMatch(/^1:9 A line end or control character/);
    expect(faultOf('{"a": "x')).toBe("1:7 This text in quotes has no end.");
    expect(faultOf('{"a": "\\x"}')).toMatch(/^1:8 A backslash/);
    expect(faultOf('{"a": 01}')).toBe('1:8 This is no number of JSON, found 1}');
    expect(faultOf('{"a": -}')).toBe("1:7 A digit is expected after the minus.");
    expect(faultOf("{} x")).toBe('1:4 Nothing may follow the value, found x');
    expect(faultOf("  ")).toBe("1:1 The text is empty: {} is a call without arguments.");
    expect(faultOf("[".repeat(300))).toMatch(/Nested deeper than 200/);
  });

  it("is wrong when a name stands twice, because only one of its values would be sent", () => {
    expect(faultOf('{"path": "a",\n "path": "b"}')).toBe('2:2 The name "path" stands twice.');
    expect(faultOf('{"a": {"path": 1}, "b": {"path": 2}}')).toBe("none");
  });

  it("agrees with JSON.parse on what is JSON", () => {
    const texts = ["{}", "[]", "null", "1e5", "-0", "1.", ".5", "+1", "0x1", "NaN", '"\\ud800"', '"\\u12"', '{"__proto__": 1}', "[1,]", "tru", "true ", "\ufeff{}", "1e", "-1.5E-3", '"\t"', "{}{}"];
    for (const text of texts) {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      expect([text, readJson(text).fault === null]).toEqual([text, isJson]);
    }
  });

  it("says when a form could not hold a number as it is written", () => {
    const isExact = (text: string) => {
      const read = readJson(text);
      return read.fault === null && read.isExact;
    };
    expect(["9007199254740991", "1.5", "1e3"].map(isExact)).toEqual([true, true, true]);
    expect(["9007199254740993", "1e400", "[1e20]"].map(isExact)).toEqual([false, false, false]);
  });
});

describe("a value", () => {
  it("is changed at one place, and everything else stays the same", () => {
    const root = { files: [{ path: "a" }, { path: "b" }], keep: 1 };
    expect(putAt(root, ["files", 1, "path"], "c")).toEqual({ files: [{ path: "a" }, { path: "c" }], keep: 1 });
    expect(putAt(root, ["files", 0], undefined)).toEqual({ files: [{ path: "b" }], keep: 1 });
    expect(putAt(root, ["files"], undefined)).toEqual({ keep: 1 });
    expect(putAt({}, ["a", "b"], 1)).toEqual({ a: { b: 1 } });
    expect(root).toEqual({ files: [{ path: "a" }, { path: "b" }], keep: 1 });
  });

  it("may have members named like those of every object", () => {
    expect(writeJson(putAt(JSON.parse('{"__proto__": 1}'), ["toString"], 2))).toBe('{\n  "__proto__": 1,\n  "toString": 2\n}');
    expect(putAt({}, ["constructor", "name"], "x")).toEqual({ constructor: { name: "x" } });
  });

  it("has a place that is said in words", () => {
    expect(sayPath(["files", 0, "path"])).toBe("files[0].path");
    expect(lineAndColumn("a\nbc", 3)).toEqual({ line: 2, column: 2 });
  });
});
