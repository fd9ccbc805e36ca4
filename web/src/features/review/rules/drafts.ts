/** Drafts of texts that a person writes in a review: kept in this browser until the decision, by review. */

const PREFIX = "holdfast.draft.";
const MAX_DRAFTS = 20;

export interface Draft {
  shownHash: string;
  text: string;
  savedAt: number;
}

export function loadDraft(reviewId: string): Draft | null {
  try {
    const draft = JSON.parse(localStorage.getItem(PREFIX + reviewId) ?? "null") as Draft | null;
    return draft && typeof draft.text === "string" ? draft : null;
  } catch {
    return null;
  }
}

/** Keep a draft; the oldest go when there are many. Returns false when the browser has no room for it. */
export function saveDraft(reviewId: string, shownHash: string, text: string): boolean {
  try {
    localStorage.setItem(PREFIX + reviewId, JSON.stringify({ shownHash, text, savedAt: Date.now() } satisfies Draft));
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

export function dropDraft(reviewId: string): void {
  localStorage.removeItem(PREFIX + reviewId);
}
