/** Pure: which parts of a hit's text are marked. */

export interface MarkedPiece {
  text: string;
  isMarked: boolean;
}

const WORD = /[\p{L}\p{N}_]+/gu;
const MIN_STEM = 4;

/** Return the marks of an exact search: every place of the text, in any case of letters unless `matchCase`. */
export function exactMarks(query: string, matchCase = false): RegExp | null {
  return query === "" ? null : new RegExp(query.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&"), matchCase ? "gu" : "giu");
}

/** Return the marks of a search by words: words of the query and those that begin like them, such as plurals. */
export function wordMarks(query: string): RegExp | null {
  const words = [...new Set((query.toLowerCase().match(WORD) ?? []).filter((word) => word.length > 1))];
  if (words.length === 0) return null;
  const stems = words.map((word) => (word.length > MIN_STEM ? word.slice(0, Math.max(MIN_STEM, word.length - 2)) : word));
  return new RegExp(`(?<![\\p{L}\\p{N}_])(?:${stems.map((stem) => `${stem}[\\p{L}\\p{N}_]*`).join("|")})`, "giu");
}

/** Return a text in pieces, those that a pattern finds marked. */
export function markText(text: string, pattern: RegExp | null): MarkedPiece[] {
  if (!pattern) return [{ text, isMarked: false }];
  const pieces: MarkedPiece[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match[0] === "") continue;
    if (match.index > at) pieces.push({ text: text.slice(at, match.index), isMarked: false });
    pieces.push({ text: match[0], isMarked: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), isMarked: false });
  return pieces;
}

const LINES = 4;

/** Return the few lines of a passage that hold most marks, and which line of it they begin at, from 0. */
export function bestLines(text: string, pattern: RegExp | null): { first: number; lines: string[] } {
  const lines = text.replace(/\s+$/, "").split("\n");
  const counts = lines.map((line) => (pattern ? [...line.matchAll(pattern)].length : 0));
  const most = Math.max(0, ...counts);
  const first = most === 0 ? 0 : counts.indexOf(most);
  return { first, lines: lines.slice(first, first + LINES) };
}
