/**
 * Pure: escapes names and lines for display as `holdfast.text.display` does, so that no character can forge, hide or reverse
 * what is shown. `names.vectors.json` is written by Python and holds both to the same answers.
 */

const INVISIBLE = new Set(
  "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc\u{1d159}",
);
const OTHER_OR_SEPARATOR = /[\p{C}\p{Z}]/u;
const MARK = /[\p{Mn}\p{Me}]/u;
const MAX_MARKS = 4;
const FIRST_MARK = 0x300;
const SHORT: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\" };
const PLAIN_ASCII = /^[\x20-\x7e]*$/;

function isPrintable(char: string): boolean {
  return char === " " || !OTHER_OR_SEPARATOR.test(char);
}

function isVariationSelector(code: number): boolean {
  return (code >= 0xfe00 && code < 0xfe10) || (code >= 0xe0100 && code < 0xe01f0);
}

/** Return whether a character is visible: no control or direction character, and none that displays as nothing. */
export function isVisible(char: string): boolean {
  return isPrintable(char) && !INVISIBLE.has(char) && !isVariationSelector(char.codePointAt(0) ?? 0);
}

/** Return for each character of a text whether it is shown as it is; piled-up combining marks are not. */
function shownMask(chars: readonly string[]): boolean[] {
  let marks = 0;
  return chars.map((char) => {
    const isMark = (char.codePointAt(0) ?? 0) >= FIRST_MARK && MARK.test(char);
    marks = isMark ? marks + 1 : 0;
    return isVisible(char) && marks <= MAX_MARKS;
  });
}

/** Return whether a name can be displayed as it is: all of it shown, and no part of it begins or ends with a blank. */
export function isPlain(name: string): boolean {
  if (name === "" || name.startsWith('"') || name.startsWith(" ") || name.endsWith(" ")) return false;
  if (name.includes("/ ") || name.includes(" /")) return false;
  return PLAIN_ASCII.test(name) || shownMask(Array.from(name)).every(Boolean);
}

/** Return a name or path for display: as it is, or quoted with misleading characters escaped as in JSON. */
export function displayName(name: string): string {
  if (isPlain(name)) return name;
  const chars = Array.from(name);
  const mask = shownMask(chars);
  return `"${chars.map((char, at) => SHORT[char] ?? (mask[at] ? char : escapeUnits(char))).join("")}"`;
}

function escapeUnits(char: string): string {
  let text = "";
  for (let at = 0; at < char.length; at += 1) {
    text += `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`;
  }
  return text;
}

/** A piece of a line: a text as it is, or one character that would not be seen, by its code point. */
export interface LinePart {
  text: string;
  isHidden: boolean;
}

/** Cut a line into what can be seen and what cannot; tabs stay. */
export function lineParts(line: string): LinePart[] {
  if (/^[\t\x20-\x7e]*$/.test(line)) return line === "" ? [] : [{ text: line, isHidden: false }];
  const chars = Array.from(line);
  const mask = shownMask(chars);
  const parts: LinePart[] = [];
  chars.forEach((char, at) => {
    if (mask[at] || char === "\t") {
      const last = parts.at(-1);
      if (last && !last.isHidden) last.text += char;
      else parts.push({ text: char, isHidden: false });
    } else {
      const code = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
      parts.push({ text: `U+${code}`, isHidden: true });
    }
  });
  return parts;
}

/** Return how many characters of a text would not be seen; line ends and tabs are no such characters. */
export function countHidden(text: string): number {
  if (/^[\t\r\n\x20-\x7e]*$/.test(text)) return 0;
  let count = 0;
  for (const line of text.split(/\r?\n/)) {
    for (const part of lineParts(line)) if (part.isHidden) count += 1;
  }
  return count;
}

/** Return a folder as the person knows it: beneath a known directory by that one's name, otherwise with `~` for the home folder. */
export function placeOf(folder: string, roots: readonly string[], home: string): string {
  const root = roots.filter((each) => `${folder}/`.startsWith(`${each}/`)).sort((left, right) => right.length - left.length)[0];
  if (root !== undefined && root !== "/") return folder.slice(splitPath(root).folder.length);
  return shortenHome(folder, home);
}

/** Return a path with `~` for the home folder. */
export function shortenHome(path: string, home: string): string {
  return home !== "" && `${path}/`.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** Return the last part of a path, and what stands before it. */
export function splitPath(path: string): { folder: string; name: string } {
  const slash = path.replace(/\/+$/, "").lastIndexOf("/");
  return slash < 0 ? { folder: "", name: path } : { folder: path.slice(0, slash + 1), name: path.slice(slash + 1) };
}
