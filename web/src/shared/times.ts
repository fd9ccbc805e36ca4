/** Pure: times in words. */

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Return how long a span is, in the largest unit that fits: `45 s`, `6 min`, `23 h`, `3 d`. */
export function formatSpan(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < 2 * DAY) return `${Math.floor(whole / HOUR)} h`;
  return `${Math.floor(whole / DAY)} d`;
}

/** Return how long ago a time is, or how far ahead. */
export function relative(at: number, now: number): string {
  const seconds = (now - at) / 1000;
  if (Math.abs(seconds) < 10) return "now";
  return seconds < 0 ? `in ${formatSpan(-seconds)}` : `${formatSpan(seconds)} ago`;
}

/** Return a time in full, in this browser's zone. */
export function exact(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Return a size as the commands write it: `0 B`, `1.50 KB`. */
export function formatSize(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${bytes} B` : `${value.toFixed(2)} ${units[unit] ?? ""}`;
}

/** Return a number with its noun: `1 file`, `1,204 files`. */
export function quantity(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? noun : plural}`;
}

/** Return how long a call took: `0.4 ms`, `41 ms`, `2.3 s`. */
export function formatDuration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
