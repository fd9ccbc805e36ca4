/**
 * Pure: reads the JSON text that a tool is called with: where it is wrong, where each value stands, and whether JavaScript
 * holds every number of it. The text itself is what is sent, so nothing is lost on the way.
 */

export type Path = readonly (string | number)[];

export interface Place {
  from: number;
  to: number;
}

export interface TextFault extends Place {
  message: string;
  line: number;
  column: number;
}

export type ReadText = { fault: TextFault } | { fault: null; value: unknown; places: ReadonlyMap<string, Place>; isExact: boolean };

const MAX_DEPTH = 200;
const MAX_SHOWN = 20;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const BLANK = /[ \t\r\n]*/y;
const HEX = /^[0-9a-fA-F]{4}$/;

class Wrong extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

/** Return a path as one text, for use as a key. */
export function keyOf(path: Path): string {
  return JSON.stringify(path);
}

/** Return a path as a reader would say it: `files[0].path`. */
export function sayPath(path: Path): string {
  let said = "";
  for (const part of path) said += typeof part === "number" ? `[${part}]` : `${said ? "." : ""}${part}`;
  return said;
}

/** Return the line and the column of an offset, both from 1. */
export function lineAndColumn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** Read a text; a name that stands twice in an object is wrong, because only one of its values would be sent. */
export function readJson(text: string): ReadText {
  const reader = new Reader(text);
  try {
    reader.readAll();
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    const at = Math.min(error.at, text.length);
    return { fault: { message: error.message, from: at, to: Math.min(at + 1, text.length), ...lineAndColumn(text, at) } };
  }
  return { fault: null, value: JSON.parse(text) as unknown, places: reader.places, isExact: reader.isExact };
}

class Reader {
  readonly places = new Map<string, Place>();
  isExact = true;
  private at = 0;

  constructor(private readonly text: string) {}

  readAll(): void {
    this.skipBlank();
    if (this.at === this.text.length) throw new Wrong("The text is empty: {} is a call without arguments.", 0);
    this.readValue([]);
    if (this.at < this.text.length) throw new Wrong(`Nothing may follow the value, found ${this.shown()}`, this.at);
  }

  private readValue(path: Path): void {
    if (path.length > MAX_DEPTH) throw new Wrong(`Nested deeper than ${MAX_DEPTH} levels.`, this.at);
    const from = this.at;
    const char = this.text[from];
    if (char === "{") this.readObject(path);
    else if (char === "[") this.readArray(path);
    else if (char === '"') this.readString();
    else if (char === "-" || (char !== undefined && char >= "0" && char <= "9")) this.readNumber();
    else this.readWord();
    this.places.set(keyOf(path), { from, to: this.at });
    this.skipBlank();
  }

  private readObject(path: Path): void {
    const names = new Set<string>();
    this.at += 1;
    this.skipBlank();
    if (this.take("}")) return;
    do {
      this.skipBlank();
      const from = this.at;
      if (this.text[from] !== '"') throw new Wrong(`A name in double quotes is expected, found ${this.shown()}`, from);
      const name = this.readString();
      if (names.has(name)) throw new Wrong(`The name ${JSON.stringify(name)} stands twice.`, from);
      names.add(name);
      this.skipBlank();
      if (!this.take(":")) throw new Wrong(`A colon is expected after the name, found ${this.shown()}`, this.at);
      this.skipBlank();
      this.readValue([...path, name]);
    } while (this.take(","));
    if (!this.take("}")) throw new Wrong(`A comma or } is expected, found ${this.shown()}`, this.at);
  }

  private readArray(path: Path): void {
    this.at += 1;
    this.skipBlank();
    if (this.take("]")) return;
    let index = 0;
    do {
      this.skipBlank();
      this.readValue([...path, index]);
      index += 1;
    } while (this.take(","));
    if (!this.take("]")) throw new Wrong(`A comma or ] is expected, found ${this.shown()}`, this.at);
  }

  private readString(): string {
    const from = this.at;
    this.at += 1;
    for (;;) {
      const char = this.text[this.at];
      if (char === undefined) throw new Wrong("This text in quotes has no end.", from);
      if (char === '"') break;
      if (char < " ") throw new Wrong("A line end or control character inside quotes is written as \\n, \\t or \\u000b.", this.at);
      if (char === "\\") this.skipEscape();
      else this.at += 1;
    }
    this.at += 1;
    return JSON.parse(this.text.slice(from, this.at)) as string;
  }

  private skipEscape(): void {
    const kind = this.text[this.at + 1] ?? "";
    if (kind === "u" && HEX.test(this.text.slice(this.at + 2, this.at + 6))) this.at += 6;
    else if (kind !== "" && '"\\/bfnrt'.includes(kind)) this.at += 2;
    else throw new Wrong("A backslash must be followed by one of \" \\ / b f n r t, or u and four digits.", this.at);
  }

  private readNumber(): void {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text)?.[0];
    if (found === undefined) throw new Wrong("A digit is expected after the minus.", this.at);
    const value = Number(found);
    if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) this.isExact = false;
    this.at += found.length;
    const next = this.text[this.at];
    if (next !== undefined && /[\w.+-]/.test(next)) throw new Wrong(`This is no number of JSON, found ${this.shown()}`, this.at);
  }

  private readWord(): void {
    const word = ["true", "false", "null"].find((each) => this.text.startsWith(each, this.at));
    if (!word) throw new Wrong(`A value is expected, found ${this.shown()}`, this.at);
    this.at += word.length;
  }

  private skipBlank(): void {
    BLANK.lastIndex = this.at;
    this.at += BLANK.exec(this.text)?.[0].length ?? 0;
  }

  private take(char: string): boolean {
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }

  private shown(): string {
    const rest = this.text.slice(this.at, this.at + MAX_SHOWN).split("\n")[0] ?? "";
    return rest === "" ? "the end" : rest;
  }
}

/** Return the value with another one at a path; undefined takes the member or item away. */
export function putAt(root: unknown, path: Path, value: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  if (typeof first === "number") {
    const items = Array.isArray(root) ? [...(root as unknown[])] : [];
    if (value === undefined && rest.length === 0) items.splice(first, 1);
    else items[first] = putAt(items[first], rest, value);
    return items;
  }
  const members = isObject(root) ? root : {};
  if (value === undefined && rest.length === 0) {
    return Object.fromEntries(Object.entries(members).filter(([name]) => name !== first));
  }
  return { ...members, [first]: putAt(Object.hasOwn(members, first) ? members[first] : undefined, rest, value) };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Write a value as the text of the JSON view. */
export function writeJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
