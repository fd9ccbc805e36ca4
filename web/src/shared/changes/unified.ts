/** Pure: the text of a unified diff as lines to show. */

export type LineKind = "hunk" | "same" | "added" | "removed" | "note";

export interface UnifiedLine {
  kind: LineKind;
  text: string;
  /** Line numbers before and after, where the line is in both or one of them. */
  before?: number;
  after?: number;
}

export interface Unified {
  lines: UnifiedLine[];
  added: number;
  removed: number;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Return the lines of a unified diff of one file; its head, which names the file, is left out. */
export function parseUnified(diff: string): Unified {
  const lines: UnifiedLine[] = [];
  let [before, after, added, removed] = [0, 0, 0, 0];
  let isInHunk = false;
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      isInHunk = true;
      [before, after] = [Number(hunk[1]), Number(hunk[3])];
      lines.push({ kind: "hunk", text: linesOf(after, Number(hunk[4] ?? 1)) });
    } else if (!isInHunk) {
      if (line !== "" && !/^(---|\+\+\+) /.test(line)) lines.push({ kind: "note", text: line });
    } else if (line.startsWith("+")) {
      lines.push({ kind: "added", text: line.slice(1), after });
      after += 1;
      added += 1;
    } else if (line.startsWith("-")) {
      lines.push({ kind: "removed", text: line.slice(1), before });
      before += 1;
      removed += 1;
    } else if (line.startsWith("\\")) {
      lines.push({ kind: "note", text: line.slice(1).trim() });
    } else {
      lines.push({ kind: "same", text: line.slice(1), before, after });
      before += 1;
      after += 1;
    }
  }
  return { lines, added, removed };
}

/** Return which lines of the later text a hunk is about. */
function linesOf(first: number, count: number): string {
  if (count === 0) return first === 0 ? "nothing is left" : `after line ${first}`;
  return count === 1 ? `line ${first}` : `lines ${first}–${first + count - 1}`;
}
