/** Drafts of texts, kept in this browser until they are used or who wrote them signs out: by review, or by file. */

const MAX_DRAFTS = 20;
let prefix = "holdfast.draft.";

/** Keep drafts apart by who is signed in: another tenant of this browser may have a file of the same name. */
export function setDraftOwner(identity: string): void {
  prefix = `holdfast.draft.${encodeURIComponent(identity)}.`;
}

/** Forget every draft of who is signed in. */
export function dropAllDrafts(): void {
  for (const name of draftNames()) localStorage.removeItem(name);
}

function draftNames(): string[] {
  return Object.keys(localStorage).filter((name) => name.startsWith(prefix));
}

export interface Draft {
  shownHash: string;
  text: string;
  savedAt: number;
}

export function loadDraft(key: string): Draft | null {
  try {
    const draft = JSON.parse(localStorage.getItem(prefix + key) ?? "null") as Draft | null;
    return draft && typeof draft.text === "string" ? draft : null;
  } catch {
    return null;
  }
}

/** Keep a draft; the oldest go when there are many. Returns false when the browser has no room for it. */
export function saveDraft(key: string, shownHash: string, text: string): boolean {
  try {
    localStorage.setItem(prefix + key, JSON.stringify({ shownHash, text, savedAt: Date.now() } satisfies Draft));
  } catch {
    return false;
  }
  const byAge = draftNames()
    .map((name) => ({ name, savedAt: loadDraft(name.slice(prefix.length))?.savedAt ?? 0 }))
    .sort((left, right) => right.savedAt - left.savedAt);
  for (const { name } of byAge.slice(MAX_DRAFTS)) localStorage.removeItem(name);
  return true;
}

export function dropDraft(key: string): void {
  localStorage.removeItem(prefix + key);
}
