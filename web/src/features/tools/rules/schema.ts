/** Pure: what a form needs of a JSON Schema: the variants of a value, a first value, and what a value breaks. */
import { isObject, type Path } from "./json_text";

export interface Schema {
  type?: string | readonly string[];
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  nullable?: boolean;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
}

export type Kind = "text" | "number" | "whole number" | "yes or no" | "null" | "choice" | "constant" | "list" | "object" | "any";

export interface Variant {
  kind: Kind;
  schema: Schema;
}

export interface Problem {
  path: Path;
  message: string;
}

const KIND_OF_TYPE: Record<string, Kind> = {
  string: "text",
  number: "number",
  integer: "whole number",
  boolean: "yes or no",
  null: "null",
};

/** Return the forms that a value may have, one by one; a value that may be null has null as its last. */
export function variantsOf(schema: Schema): Variant[] {
  const { anyOf, oneOf, nullable, ...rest } = schema;
  const choices = anyOf ?? oneOf;
  const plain = choices
    ? choices.flatMap((choice) => variantsOf({ ...rest, ...choice }))
    : Array.isArray(rest.type)
      ? (rest.type as readonly string[]).flatMap((type) => variantsOf({ ...rest, type }))
      : [{ kind: kindOf(rest), schema: rest }];
  const withNull = nullable && !plain.some((each) => each.kind === "null") ? [...plain, { kind: "null" as const, schema: { type: "null" } }] : plain;
  return withNull.toSorted((a, b) => Number(a.kind === "null") - Number(b.kind === "null"));
}

function kindOf(schema: Schema): Kind {
  if ("const" in schema) return "constant";
  if (schema.enum) return "choice";
  if (schema.type === "array") return schema.items ? "list" : "any";
  if (schema.type === "object" || schema.properties) return schema.properties ? "object" : "any";
  return KIND_OF_TYPE[typeof schema.type === "string" ? schema.type : ""] ?? "any";
}

/** Return the variant that a value is of, the one with the fewest problems; the first when it is of none. */
export function variantFor(variants: readonly Variant[], value: unknown): Variant {
  const ranked = variants
    .map((variant) => ({ variant, isOfKind: isOfKind(variant, value), count: checkVariant(variant, value, []).length }))
    .toSorted((a, b) => Number(b.isOfKind) - Number(a.isOfKind) || a.count - b.count);
  return ranked[0]?.variant ?? { kind: "any", schema: {} };
}

function isOfKind({ kind, schema }: Variant, value: unknown): boolean {
  switch (kind) {
    case "text":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "whole number":
      return typeof value === "number" && Number.isInteger(value);
    case "yes or no":
      return typeof value === "boolean";
    case "null":
      return value === null;
    case "choice":
      return schema.enum?.includes(value) ?? false;
    case "constant":
      return JSON.stringify(value) === JSON.stringify(schema.const);
    case "list":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "any":
      return schema.type === "object" ? isObject(value) : schema.type === "array" ? Array.isArray(value) : true;
  }
}

/** Return what a form begins with: what is required, and no more. */
export function emptyOf(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default;
  const variant = variantsOf(schema)[0];
  if (!variant) return null;
  const { kind, schema: plain } = variant;
  if (kind === "constant") return plain.const;
  if (kind === "choice") return plain.enum?.[0];
  if (kind === "text") return "";
  if (kind === "number" || kind === "whole number") return plain.minimum ?? 0;
  if (kind === "yes or no") return false;
  if (kind === "null") return null;
  if (kind === "list") return Array.from({ length: plain.minItems ?? 0 }, () => emptyOf(plain.items ?? {}));
  if (plain.type === "array") return [];
  return Object.fromEntries((plain.required ?? []).map((name) => [name, emptyOf(plain.properties?.[name] ?? {})]));
}

const SAID: Record<Kind, string> = {
  text: "text in quotes",
  number: "a number",
  "whole number": "a whole number",
  "yes or no": "true or false",
  null: "null",
  choice: "one of the choices",
  constant: "the constant",
  list: "a list",
  object: "an object",
  any: "an object",
};

/** Return everything about a value that its schema does not allow, with the place of each. */
export function problemsOf(schema: Schema, value: unknown, path: Path = []): Problem[] {
  const variants = variantsOf(schema);
  const nearest = variantFor(variants, value);
  if (!isOfKind(nearest, value)) return [{ path, message: `Expected ${variants.map(sayVariant).join(" or ")}.` }];
  return checkVariant(nearest, value, path);
}

function sayVariant({ kind, schema }: Variant): string {
  if (kind === "choice") return `one of ${(schema.enum ?? []).map((each) => JSON.stringify(each)).join(", ")}`;
  if (kind === "constant") return JSON.stringify(schema.const);
  return kind === "any" && schema.type === "array" ? "a list" : SAID[kind];
}

function checkVariant({ schema }: Variant, value: unknown, path: Path): Problem[] {
  if (typeof value === "string") return [...bounds(Array.from(value).length, schema.minLength, schema.maxLength, "characters", path)];
  if (typeof value === "number") return checkNumber(schema, value, path);
  if (Array.isArray(value)) {
    const items = schema.items ? (value as unknown[]).flatMap((item, at) => problemsOf(schema.items ?? {}, item, [...path, at])) : [];
    return [...bounds(value.length, schema.minItems, schema.maxItems, "items", path), ...items];
  }
  return isObject(value) ? checkObject(schema, value, path) : [];
}

function checkObject(schema: Schema, value: Record<string, unknown>, path: Path): Problem[] {
  const properties = schema.properties ?? {};
  const missing = (schema.required ?? [])
    .filter((name) => !Object.hasOwn(value, name))
    .map((name) => ({ path: [...path, name], message: "It is required." }));
  const members = Object.entries(value).flatMap(([name, member]) => {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (inner) {
      // Null leaves an optional argument out: the server takes it so.
      return member === null && !schema.required?.includes(name) ? [] : problemsOf(inner, member, [...path, name]);
    }
    if (isObject(schema.additionalProperties)) return problemsOf(schema.additionalProperties, member, [...path, name]);
    return schema.additionalProperties === false ? [{ path: [...path, name], message: "There is no argument of that name." }] : [];
  });
  return [...missing, ...members];
}

function checkNumber(schema: Schema, value: number, path: Path): Problem[] {
  const limits: [number | undefined, boolean, string][] = [
    [schema.minimum, value < (schema.minimum ?? -Infinity), "at least"],
    [schema.maximum, value > (schema.maximum ?? Infinity), "at most"],
    [schema.exclusiveMinimum, value <= (schema.exclusiveMinimum ?? -Infinity), "more than"],
    [schema.exclusiveMaximum, value >= (schema.exclusiveMaximum ?? Infinity), "less than"],
  ];
  return limits.filter(([, isBroken]) => isBroken).map(([limit, , word]) => ({ path, message: `Must be ${word} ${limit ?? ""}.` }));
}

function bounds(count: number, min: number | undefined, max: number | undefined, what: string, path: Path): Problem[] {
  if (min !== undefined && count < min) return [{ path, message: `At least ${min} ${what}.` }];
  if (max !== undefined && count > max) return [{ path, message: `At most ${max} ${what}.` }];
  return [];
}
