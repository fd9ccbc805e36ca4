/** What a reader chose for this browser. */
import { useSyncExternalStore } from "react";

export interface Preferences {
  diffColours: "green-red" | "blue-orange";
  diffView: "split" | "unified";
  wrap: boolean;
}

const STORED = "holdfast.preferences";
const DEFAULTS: Preferences = { diffColours: "green-red", diffView: "split", wrap: true };
const watchers = new Set<() => void>();
let current: Preferences | null = null;

export function preferences(): Preferences {
  if (current) return current;
  let stored: Partial<Preferences>;
  try {
    stored = JSON.parse(localStorage.getItem(STORED) ?? "{}") as Partial<Preferences>;
  } catch {
    stored = {};
  }
  current = { ...DEFAULTS, ...stored };
  return current;
}

export function prefer(change: Partial<Preferences>): void {
  current = { ...preferences(), ...change };
  localStorage.setItem(STORED, JSON.stringify(current));
  applyDiffColours();
  for (const watcher of watchers) watcher();
}

export function usePreferences(): Preferences {
  return useSyncExternalStore((watcher) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }, preferences);
}

export function applyDiffColours(): void {
  document.documentElement.dataset["diffColours"] = preferences().diffColours;
}
