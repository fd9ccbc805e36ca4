import { useSyncExternalStore } from "react";
import classes from "./shared.module.css";
import { exact, formatSpan, relative } from "./times";

const TICK_MS = 10_000;
const watchers = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  now = Date.now();
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of watchers) each();
  }, TICK_MS);
  return () => {
    watchers.delete(watcher);
    if (watchers.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Return the time of this page, which moves on every ten seconds for all that show one. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => now);
}

/** Show a moment of the server: how long ago, with the exact time on hover. `until` shows what is left instead. */
export function Time({ at, until = false }: { at: string; until?: boolean }) {
  const moment = Date.parse(at);
  const current = useNow();
  const text = until ? `${formatSpan((moment - current) / 1000)} left` : relative(moment, current);
  return (
    <time className={classes.time} dateTime={at} title={exact(moment)}>
      {text}
    </time>
  );
}
