/** Drafts of texts that a person writes, kept in this browser until they are used: by review, or by file. */

const PREFIX = "holdfast.draft.";
const MAX_DRAFTS = 20;

export interface Draft {
  shownHash: string;
  text: string;
  savedAt: number;
}

export function loadDraft(key: string): Draft | null {
  try {
    const draft = JSON.parse(localStorage.getItem(PREFIX + key) ?? "null") as Draft | null;
    return draft && typeof draft.text === "string" ? draft : null;
  } catch {
    return null;
  }
}

/** Keep a draft; the oldest go when there are many. Returns false when the browser has no room for it. */
export function saveDraft(key: string, shownHash: string, text: string): boolean {
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify({ shownHash, text, savedAt: Date.now() } satisfies Draft));
  } catch {
    return false;
  }
  const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
  const byAge = names
    .map((name) => ({ name, savedAt: loadDraft(name.slice(PREFIX.length))?.savedAt ?? 0 }))
    .sort((left, right) => right.savedAt - left.savedAt);
  for (const { name } of byAge.slice(MAX_DRAFTS)) localStorage.removeItem(name);
  return true;
}

export function dropDraft(key: string): void {
  localStorage.removeItem(PREFIX + key);
}
