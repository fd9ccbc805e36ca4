/** Pure: two texts that went apart from one, as parts that are alike and parts to choose from. */
import { lineRuns } from "@/shared/diff/line_diff";

export type Choice = "mine" | "theirs" | "both" | null;

/** Lines that are alike in both, or lines of which mine or theirs is to be chosen. */
export type Part =
  | { type: "same"; lines: string[] }
  | { type: "choice"; id: number; mine: string[]; theirs: string[]; suggested: Choice };

/**
 * Return the parts of a conflict. Where only one side differs from the text that both began with, that side is suggested; where
 * both differ, nothing is.
 */
export function conflictParts(base: string, mine: string, theirs: string): Part[] {
  const [baseLines, mineLines, theirLines] = [base.split("\n"), mine.split("\n"), theirs.split("\n")];
  const changedByMe = lineRuns(baseLines, mineLines);
  const changedByThem = lineRuns(baseLines, theirLines);
  const parts: Part[] = [];
  let at = 0;
  let id = 0;
  for (const run of lineRuns(theirLines, mineLines)) {
    if (run.fromA > at) parts.push({ type: "same", lines: theirLines.slice(at, run.fromA) });
    const isMine = changedByMe.some((each) => touches(each.fromB, each.toB, run.fromB, run.toB));
    const isTheirs = changedByThem.some((each) => touches(each.fromB, each.toB, run.fromA, run.toA));
    parts.push({
      type: "choice",
      id: (id += 1),
      mine: mineLines.slice(run.fromB, run.toB),
      theirs: theirLines.slice(run.fromA, run.toA),
      suggested: isMine === isTheirs ? null : isMine ? "mine" : "theirs",
    });
    at = run.toA;
  }
  if (at < theirLines.length) parts.push({ type: "same", lines: theirLines.slice(at) });
  return parts;
}

function touches(from: number, to: number, otherFrom: number, otherTo: number): boolean {
  return from <= otherTo && otherFrom <= to;
}

/** Return the text that the choices make; null while one is missing. */
export function resolve(parts: readonly Part[], choices: ReadonlyMap<number, Choice>): string | null {
  const lines: string[] = [];
  for (const part of parts) {
    if (part.type === "same") {
      lines.push(...part.lines);
      continue;
    }
    const choice = choices.get(part.id) ?? part.suggested;
    if (choice === null) return null;
    if (choice !== "mine") lines.push(...part.theirs);
    if (choice !== "theirs") lines.push(...part.mine);
  }
  return lines.join("\n");
}
