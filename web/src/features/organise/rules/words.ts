/** Pure: plans in the words of the commands. */
import { quantity } from "@/shared/times";

export type Totals = Readonly<Record<string, number>>;

export interface Standing {
  text: string;
  /** Whether the person is asked to do something. */
  waits: boolean;
}

function count(totals: Totals, status: string): number {
  return totals[status] ?? 0;
}

/** Return the number of moves of a plan in a list, whose totals are by status alone. */
export function movesOf(byStatus: Totals): number {
  return Object.values(byStatus).reduce((sum, each) => sum + each, 0);
}

/** Return how an execution ended: `1,203 moved, 1 stayed, 2 came back`. */
export function outcome(totals: Totals): string {
  const stayed = count(totals, "SKIPPED") + count(totals, "ERROR");
  const back = count(totals, "UNDONE");
  const done = count(totals, "DONE");
  const parts = [done > 0 || back === 0 ? `${done.toLocaleString("en-US")} moved` : ""];
  if (back > 0) parts.push(`${back.toLocaleString("en-US")} came back`);
  if (stayed > 0) parts.push(`${stayed.toLocaleString("en-US")} stayed`);
  return parts.filter(Boolean).join(", ");
}

/** Return where a plan stands. */
export function standing(status: string, totals: Totals, moves: number, isBusy: boolean): Standing {
  if (isBusy) return { text: "at work", waits: false };
  switch (status) {
    case "CREATED":
      return moves > 0 ? { text: "waits for you", waits: true } : { text: "nothing to move", waits: false };
    case "APPROVED":
      return { text: "approved, nothing has moved yet", waits: true };
    case "RUNNING":
      return { text: `interrupted: ${outcome(totals)}`, waits: true };
    case "FAILED":
    case "EXECUTED":
      return { text: outcome(totals), waits: false };
    case "UNDONE":
      return { text: `undone: ${outcome(totals)}`, waits: false };
    case "CANCELLED":
      return { text: "closed", waits: false };
    default:
      return { text: status.toLowerCase(), waits: false };
  }
}

/** Return what approving would do: `1,204 files go to 14 folders, 2 of them new.` */
export function promise(moves: number, folders: number, newFolders: number): string {
  const fresh = newFolders === 0 ? "" : newFolders === folders ? (folders === 1 ? ", a new one" : ", all new") : `, ${newFolders.toLocaleString("en-US")} of them new`;
  return `${quantity(moves, "file")} ${moves === 1 ? "goes" : "go"} to ${quantity(folders, "folder")}${fresh}.`;
}

/** Return what a scan did in one line, as the command says it. */
export function measuresLine(measures: { files: number; cache_hit_rate: number; tokens_saved: number; safety_skips: number; do_nothing_ratio: number }): string {
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const parts = [`${quantity(measures.files, "file")} scanned`, `${percent(measures.do_nothing_ratio)} stay`];
  if (measures.cache_hit_rate > 0) parts.push(`${percent(measures.cache_hit_rate)} known before`);
  if (measures.safety_skips > 0) parts.push(`${measures.safety_skips.toLocaleString("en-US")} skipped`);
  return parts.join(", ");
}

/** Return a path as a shell takes it. */
export function shellWord(path: string): string {
  return /^[\w@%+=:,./~-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
