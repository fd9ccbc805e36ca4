import { describe, expect, it } from "vitest";
import { emptyOf, problemsOf, variantFor, variantsOf, type Schema } from "./schema";

const EDIT: Schema = {
  type: "object",
  properties: {
    files: {
      type: "array",
      minItems: 1,
      maxItems: 2,
      items: {
        type: "object",
        properties: { path: { type: "string" }, count: { type: "integer", minimum: 1, default: 1 } },
        required: ["path"],
      },
    },
    how: { type: "string", enum: ["fast", "slow"] },
    deep: { type: "boolean" },
  },
  required: ["files"],
  additionalProperties: false,
};

function told(schema: Schema, value: unknown): string[] {
  return problemsOf(schema, value).map((problem) => `${problem.path.join("/")}: ${problem.message}`);
}

describe("a schema", () => {
  it("gives a form what is required and no more", () => {
    expect(emptyOf(EDIT)).toEqual({ files: [{ path: "" }] });
    expect(emptyOf({ type: "object" })).toEqual({});
    expect([emptyOf({ enum: ["a", "b"] }), emptyOf({ const: 7 }), emptyOf({ type: "integer", minimum: 3 }), emptyOf({ type: ["null", "string"] })]).toEqual(["a", 7, 3, ""]);
  });

  it("has one form for each member of a union, and null last", () => {
    const kinds = (schema: Schema) => variantsOf(schema).map((variant) => variant.kind);
    expect(kinds({ anyOf: [{ type: "null" }, { type: "string" }, { type: "array", items: {} }] })).toEqual(["text", "list", "null"]);
    expect(kinds({ type: ["integer", "null"] })).toEqual(["whole number", "null"]);
    expect(kinds({ type: "string", nullable: true })).toEqual(["text", "null"]);
    expect(kinds({ oneOf: [{ enum: [1] }, { anyOf: [{ type: "boolean" }, { type: "number" }] }] })).toEqual(["choice", "yes or no", "number"]);
  });

  it("finds the form that a value is of", () => {
    const union = variantsOf({
      anyOf: [
        { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
        { type: "object", properties: { b: { type: "string" } }, required: ["b"] },
        { type: "null" },
      ],
    });
    expect(union.indexOf(variantFor(union, { b: "x" }))).toBe(1);
    expect(variantFor(union, null).kind).toBe("null");
  });

  it("says what it does not allow, and where", () => {
    expect(told(EDIT, { files: [{ path: "a" }] })).toEqual([]);
    expect(told(EDIT, {})).toEqual(["files: It is required."]);
    expect(told(EDIT, { files: [] })).toEqual(["files: At least 1 items."]);
    expect(told(EDIT, { files: [{ path: 1, count: 0 }, {}], how: "odd", deep: "yes", more: 1 })).toEqual([
      "files/0/path: Expected text in quotes.",
      "files/0/count: Must be at least 1.",
      "files/1/path: It is required.",
      'how: Expected one of "fast", "slow".',
      "deep: Expected true or false.",
      "more: There is no argument of that name.",
    ]);
    expect(told({ anyOf: [{ type: "string" }, { type: "null" }] }, 5)).toEqual([": Expected text in quotes or null."]);
    expect(told({ type: "integer" }, 1.5)).toEqual([": Expected a whole number."]);
    expect(told({ type: "number", exclusiveMinimum: 0 }, 0)).toEqual([": Must be more than 0."]);
  });

  it("lets null stand for an optional argument that is left out, as the server does", () => {
    expect(told(EDIT, { files: [{ path: "a", count: null }], how: null })).toEqual([]);
    expect(told(EDIT, { files: null })).toEqual(["files: Expected a list."]);
  });
});
