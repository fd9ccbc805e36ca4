/** Pure: corrections that were made on this page and are sent together, so that the folder is judged anew once for all. */

/** Folders by address of a file; null leaves the file where it is. */
export type Decisions = ReadonlyMap<string, string | null>;

export interface Staging {
  /** Not sent yet. */
  staged: Decisions;
  /** Sent, and not answered yet. */
  sent: Decisions | null;
}

export type StagingStep =
  | { type: "stage"; addresses: readonly string[]; folder: string | null }
  | { type: "send" }
  | { type: "end" };

export const NOTHING_STAGED: Staging = { staged: new Map(), sent: null };

/** Return what is staged after a step; a later decision on a file replaces an earlier one. */
export function stage(state: Staging, step: StagingStep): Staging {
  switch (step.type) {
    case "stage": {
      const staged = new Map(state.staged);
      for (const address of step.addresses) staged.set(address, step.folder);
      return { ...state, staged };
    }
    case "send":
      return state.sent || state.staged.size === 0 ? state : { staged: new Map(), sent: state.staged };
    case "end":
      return { ...state, sent: null };
  }
}

/** Return the decision on a file that the server has not confirmed yet; undefined when there is none. */
export function decisionOn(state: Staging, address: string): string | null | undefined {
  const staged = state.staged.get(address);
  return staged !== undefined ? staged : state.sent?.get(address);
}

export interface ChangedMove {
  path: string;
  before?: string | null;
  to?: string | null;
}

/** Return the changes that were not asked for: what the folder, judged anew, sends elsewhere because of what was learnt. */
export function others(changed: readonly ChangedMove[], decided: Decisions): ChangedMove[] {
  return changed.filter((each) => !decided.has(each.path));
}
