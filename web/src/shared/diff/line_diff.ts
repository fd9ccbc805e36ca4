/**
 * Pure: the hunks between two texts of which the server knows only one, such as a proposal and the text that a person is
 * writing. Never used for what a decision is about: that has the server's hunks.
 */
import type { ServerHunk } from "./hunks";

const CONTEXT = 3;
const MAX_EDITS = 2000;

/** Lines of both texts that differ, from 0, ends exclusive. */
export interface LineRun {
  fromA: number;
  toA: number;
  fromB: number;
  toB: number;
}

/** Return the hunks of a unified diff; texts too far apart are one run from the first difference to the last. */
export function lineHunks(before: string, after: string): ServerHunk[] {
  const a = before.split("\n");
  const b = after.split("\n");
  const groups: LineRun[][] = [];
  for (const run of lineRuns(a, b)) {
    const last = groups.at(-1)?.at(-1);
    if (last && run.fromA - last.toA <= 2 * CONTEXT) groups.at(-1)?.push(run);
    else groups.push([run]);
  }
  return groups.map((group, index) => hunkOf(group, a, b, index));
}

function hunkOf(group: readonly LineRun[], a: readonly string[], b: readonly string[], index: number): ServerHunk {
  const [first, last] = [group[0], group.at(-1)];
  if (!first || !last) return { hash: `local-${index}`, header: "@@ -0,0 +0,0 @@", body: "" };
  const head = Math.min(CONTEXT, first.fromA);
  const tail = Math.min(CONTEXT, a.length - last.toA);
  const lines: string[] = [];
  let at = first.fromA - head;
  for (const run of group) {
    while (at < run.fromA) lines.push(` ${a[at++] ?? ""}`);
    for (; at < run.toA; at += 1) lines.push(`-${a[at] ?? ""}`);
    for (let to = run.fromB; to < run.toB; to += 1) lines.push(`+${b[to] ?? ""}`);
  }
  while (at < last.toA + tail) lines.push(` ${a[at++] ?? ""}`);
  const before = range(first.fromA - head, last.toA + tail);
  const after = range(first.fromB - head, last.toB + tail);
  return { hash: `local-${index}`, header: `@@ -${before} +${after} @@\n`, body: lines.map((line) => `${line}\n`).join("") };
}

function range(from: number, to: number): string {
  return `${to > from ? from + 1 : from},${to - from}`;
}

/** Return the runs of lines that differ, by Myers' algorithm between the common beginning and end. */
export function lineRuns(a: readonly string[], b: readonly string[]): LineRun[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const endA = a.length - tail;
  const endB = b.length - tail;
  if (head === endA && head === endB) return [];
  const path = shortestPath(a, b, head, endA, endB);
  if (!path) return [{ fromA: head, toA: endA, fromB: head, toB: endB }];
  const runs: LineRun[] = [];
  for (const step of path) {
    const last = runs.at(-1);
    if (last && last.toA === step.fromA && last.toB === step.fromB) {
      last.toA = step.toA;
      last.toB = step.toB;
    } else runs.push({ ...step });
  }
  return runs;
}

/** Return single removals and additions in order; null when there are more than MAX_EDITS. */
function shortestPath(a: readonly string[], b: readonly string[], start: number, endA: number, endB: number): LineRun[] | null {
  const [rows, columns] = [endA - start, endB - start];
  const limit = Math.min(rows + columns, MAX_EDITS);
  const traces: Int32Array[] = [];
  let furthest = new Int32Array(2 * limit + 3);
  const offset = limit + 1;
  for (let edits = 0; edits <= limit; edits += 1) {
    traces.push(furthest.slice(offset - edits - 1, offset + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && at(furthest, offset + k - 1) < at(furthest, offset + k + 1));
      let x = down ? at(furthest, offset + k + 1) : at(furthest, offset + k - 1) + 1;
      while (x < rows && x - k < columns && a[start + x] === b[start + x - k]) x += 1;
      furthest[offset + k] = x;
      if (x >= rows && x - k >= columns) return walkBack(traces, rows, columns, start);
    }
    furthest = furthest.slice();
  }
  return null;
}

function walkBack(traces: readonly Int32Array[], rows: number, columns: number, start: number): LineRun[] {
  const steps: LineRun[] = [];
  let [x, y] = [rows, columns];
  for (let edits = traces.length - 1; edits > 0; edits -= 1) {
    const trace = traces[edits];
    if (!trace) break;
    const middle = edits + 1;
    const k = x - y;
    const down = k === -edits || (k !== edits && at(trace, middle + k - 1) < at(trace, middle + k + 1));
    const fromX = down ? at(trace, middle + k + 1) : at(trace, middle + k - 1);
    const fromY = fromX - (down ? k + 1 : k - 1);
    steps.push({
      fromA: start + fromX,
      toA: start + fromX + (down ? 0 : 1),
      fromB: start + fromY,
      toB: start + fromY + (down ? 1 : 0),
    });
    [x, y] = [fromX, fromY];
  }
  return steps.reverse();
}

function at(array: Int32Array, index: number): number {
  return array[index] ?? 0;
}
