/** Single keys of pages and sequences such as `g i`: they sleep in fields and dialogs and can be switched off. */
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface KeyAction {
  /** The keys as they are shown: `j`, `g i`, `Enter`. */
  keys: string;
  label: string;
  run: () => void;
  isOff?: boolean;
  /** Not shown in the palette, only in the map of keys. */
  isMotion?: boolean;
}

interface Layer {
  group: string;
  actions: readonly KeyAction[];
}

const STORED = "holdfast.keys";
const SEQUENCE_MS = 1200;
const layers: Layer[] = [];
const watchers = new Set<() => void>();
let snapshot: readonly Layer[] = [];
let prefix = { key: "", at: 0 };

function changed(): void {
  snapshot = [...layers];
  for (const watcher of watchers) watcher();
}

export function areKeysOn(): boolean {
  return localStorage.getItem(STORED) !== "off";
}

/** Return whether single keys are on, for what shows them. */
export function useAreKeysOn(): boolean {
  return useSyncExternalStore(watch, areKeysOn);
}

export function switchKeys(isOn: boolean): void {
  if (isOn) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, "off");
  changed();
}

/** Offer actions for as long as the component is shown; `group` is their heading in the map of keys. */
export function useKeys(group: string, actions: readonly KeyAction[]): void {
  const layer = useRef<Layer>({ group, actions });
  useEffect(() => {
    layer.current.group = group;
    layer.current.actions = actions;
  });
  useEffect(() => {
    const mine = layer.current;
    layers.push(mine);
    changed();
    return () => {
      layers.splice(layers.indexOf(mine), 1);
      changed();
    };
  }, []);
}

/** Return what can be done now, page first. */
export function useActions(): readonly Layer[] {
  return useSyncExternalStore(watch, () => snapshot);
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select") !== null;
}

/** Return whether the key belongs to what has the focus: Enter and Space work buttons, links and boxes. */
function isOwnKey(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" && event.key !== " ") return false;
  return event.target instanceof HTMLElement && event.target.closest("button, a, input, summary, [role=button]") !== null;
}

function nameOf(event: KeyboardEvent): string {
  return event.key === " " ? "Space" : event.key;
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (!areKeysOn() || takesText(event.target) || isOwnKey(event) || document.querySelector("[aria-modal=true]")) return;
  const key = nameOf(event);
  if (key === "Shift") return;
  const isFresh = event.timeStamp - prefix.at < SEQUENCE_MS;
  const wanted = prefix.key && isFresh ? `${prefix.key} ${key}` : key;
  prefix = { key: "", at: 0 };
  for (const layer of [...layers].reverse()) {
    const action = layer.actions.find((each) => each.keys === wanted);
    if (action) {
      event.preventDefault();
      if (!action.isOff) action.run();
      return;
    }
  }
  if (layers.some((layer) => layer.actions.some((action) => action.keys.startsWith(`${key} `)))) {
    prefix = { key, at: event.timeStamp };
  }
}

export function listenToKeys(): () => void {
  document.addEventListener("keydown", onKeyDown);
  return () => document.removeEventListener("keydown", onKeyDown);
}
