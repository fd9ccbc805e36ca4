/**
 * Pure: the server's hunks as lines, rows and ranges. They are the only diff of the console: their numbers and hashes are those
 * that a decision names, and no second algorithm draws other borders.
 */

export interface ServerHunk {
  hash: string;
  header: string;
  body: string;
}

export type LineKind = "same" | "add" | "remove";

export interface DiffLine {
  kind: LineKind;
  /** Line numbers from 1, where the line stands in that text. */
  before?: number;
  after?: number;
  text: string;
  /** The text ends here without a line end. */
  isUnended?: boolean;
}

/** Lines removed and added at one place, with nothing alike between them. */
export interface ChangedRun {
  beforeFrom: number;
  beforeTo: number;
  afterFrom: number;
  afterTo: number;
}

/** One hunk; `from` and `to` are line indexes from 0, `to` exclusive. */
export interface Hunk {
  hash: string;
  index: number;
  beforeFrom: number;
  beforeTo: number;
  afterFrom: number;
  afterTo: number;
  lines: DiffLine[];
  added: number;
  removed: number;
}

/** A gap of so few lines is shown: hiding it would take as much room. */
const MAX_SHOWN_GAP = 2;

const HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Return a server's hunk with its lines numbered. */
export function parseHunk(hunk: ServerHunk, index: number): Hunk {
  const match = HEADER.exec(hunk.header);
  if (!match) throw new Error(`This is no header of a hunk: ${hunk.header}`);
  const [beforeFrom, beforeCount] = span(match[1], match[2]);
  const [afterFrom, afterCount] = span(match[3], match[4]);
  const lines: DiffLine[] = [];
  let before = beforeFrom;
  let after = afterFrom;
  let added = 0;
  let removed = 0;
  const raw = hunk.body.split("\n");
  if (raw.at(-1) === "") raw.pop();
  for (const line of raw) {
    const text = line.slice(1);
    if (line.startsWith("\\")) {
      const last = lines.at(-1);
      if (last) last.isUnended = true;
    } else if (line.startsWith("-")) {
      lines.push({ kind: "remove", before: (before += 1), text });
      removed += 1;
    } else if (line.startsWith("+")) {
      lines.push({ kind: "add", after: (after += 1), text });
      added += 1;
    } else {
      lines.push({ kind: "same", before: (before += 1), after: (after += 1), text });
    }
  }
  const ends = { beforeTo: beforeFrom + beforeCount, afterTo: afterFrom + afterCount };
  return { hash: hunk.hash, index, beforeFrom, afterFrom, ...ends, lines, added, removed };
}

/** Return where a range starts, from 0, and how long it is; an empty range is named by the line before it. */
function span(start: string | undefined, count: string | undefined): [number, number] {
  const length = count === undefined ? 1 : Number(count);
  return [length === 0 ? Number(start) : Number(start) - 1, length];
}

/** Return the runs of changed lines of a hunk, without what is alike around them. */
export function changedRuns(hunk: Hunk): ChangedRun[] {
  const runs: ChangedRun[] = [];
  let before = hunk.beforeFrom;
  let after = hunk.afterFrom;
  let run: ChangedRun | null = null;
  for (const line of hunk.lines) {
    if (line.kind === "same") {
      before += 1;
      after += 1;
      run = null;
      continue;
    }
    if (!run) {
      run = { beforeFrom: before, beforeTo: before, afterFrom: after, afterTo: after };
      runs.push(run);
    }
    if (line.kind === "remove") run.beforeTo = before += 1;
    else run.afterTo = after += 1;
  }
  return runs;
}

export type DiffRow =
  | { type: "gap"; id: string; beforeFrom: number; afterFrom: number; count: number }
  | { type: "hunk"; hunk: Hunk }
  | { type: "line"; hunk: Hunk | null; line: DiffLine; partner?: DiffLine }
  | { type: "pair"; hunk: Hunk | null; left: DiffLine | null; right: DiffLine | null };

export interface DiffModel {
  hunks: Hunk[];
  beforeLines: string[];
  /** Characters of the longest line, for lists that do not wrap. */
  longest: number;
  digits: number;
}

/** Return the model of a review's texts. */
export function makeModel(before: string, serverHunks: readonly ServerHunk[]): DiffModel {
  const hunks = serverHunks.map(parseHunk);
  const beforeLines = splitLines(before);
  let longest = 0;
  for (const hunk of hunks) for (const line of hunk.lines) longest = Math.max(longest, line.text.length);
  const last = hunks.at(-1);
  const most = Math.max(beforeLines.length, beforeLines.length + (last ? last.afterTo - last.beforeTo : 0));
  return { hunks, beforeLines, longest: Math.min(longest, 4000), digits: Math.max(2, String(most).length) };
}

/** Return the lines of a text; an end of line after the last one begins no further line. */
export function splitLines(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Return the rows that are shown: hunks, and between them gaps, or their lines where a gap is open. */
export function makeRows(model: DiffModel, view: "split" | "unified", openGaps: ReadonlySet<string>): DiffRow[] {
  const rows: DiffRow[] = [];
  let beforeAt = 0;
  let afterAt = 0;
  const gap = (to: number) => {
    const count = to - beforeAt;
    if (count <= 0) return;
    const id = `gap-${beforeAt}`;
    if (count > MAX_SHOWN_GAP && !openGaps.has(id)) {
      rows.push({ type: "gap", id, beforeFrom: beforeAt, afterFrom: afterAt, count });
      return;
    }
    for (let at = 0; at < count; at += 1) {
      const text = model.beforeLines[beforeAt + at] ?? "";
      const line: DiffLine = { kind: "same", before: beforeAt + at + 1, after: afterAt + at + 1, text };
      rows.push(view === "split" ? { type: "pair", hunk: null, left: line, right: line } : { type: "line", hunk: null, line });
    }
  };
  for (const hunk of model.hunks) {
    gap(hunk.beforeFrom);
    rows.push({ type: "hunk", hunk });
    for (const row of view === "split" ? pairRows(hunk) : lineRows(hunk)) rows.push(row);
    beforeAt = hunk.beforeTo;
    afterAt = hunk.afterTo;
  }
  gap(model.beforeLines.length);
  return rows;
}

function runsOf(hunk: Hunk): { same: DiffLine | null; removed: DiffLine[]; added: DiffLine[] }[] {
  const runs: { same: DiffLine | null; removed: DiffLine[]; added: DiffLine[] }[] = [];
  let run: { same: null; removed: DiffLine[]; added: DiffLine[] } | null = null;
  for (const line of hunk.lines) {
    if (line.kind === "same") {
      run = null;
      runs.push({ same: line, removed: [], added: [] });
      continue;
    }
    if (!run) {
      run = { same: null, removed: [], added: [] };
      runs.push(run);
    }
    (line.kind === "remove" ? run.removed : run.added).push(line);
  }
  return runs;
}

function pairRows(hunk: Hunk): DiffRow[] {
  const rows: DiffRow[] = [];
  for (const { same, removed, added } of runsOf(hunk)) {
    if (same) rows.push({ type: "pair", hunk, left: same, right: same });
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      rows.push({ type: "pair", hunk, left: removed[at] ?? null, right: added[at] ?? null });
    }
  }
  return rows;
}

function lineRows(hunk: Hunk): DiffRow[] {
  const rows: DiffRow[] = [];
  for (const { same, removed, added } of runsOf(hunk)) {
    if (same) rows.push({ type: "line", hunk, line: same });
    removed.forEach((line, at) => rows.push(withPartner(hunk, line, added[at])));
    added.forEach((line, at) => rows.push(withPartner(hunk, line, removed[at])));
  }
  return rows;
}

function withPartner(hunk: Hunk, line: DiffLine, partner: DiffLine | undefined): DiffRow {
  return partner ? { type: "line", hunk, line, partner } : { type: "line", hunk, line };
}

/** A range of characters of both texts that differ. */
export interface TextRange {
  fromA: number;
  toA: number;
  fromB: number;
  toB: number;
}

/** Return the server's hunks as ranges of characters, as an editor wants them. */
export function textRanges(before: string, after: string, hunks: readonly Hunk[]): TextRange[] {
  const beforeStarts = lineStarts(before);
  const afterStarts = lineStarts(after);
  const at = (starts: number[], line: number, length: number) => starts[line] ?? length;
  return hunks.flatMap((hunk) =>
    changedRuns(hunk).map((run) => ({
      fromA: at(beforeStarts, run.beforeFrom, before.length),
      toA: at(beforeStarts, run.beforeTo, before.length),
      fromB: at(afterStarts, run.afterFrom, after.length),
      toB: at(afterStarts, run.afterTo, after.length),
    })),
  );
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
