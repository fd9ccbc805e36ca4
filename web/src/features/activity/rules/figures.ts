/** Pure: figures of the server at two moments, as rates and quantiles. */

export interface Figure {
  labels: Record<string, string>;
  value: number;
}
export type Figures = Record<string, readonly Figure[]>;

/** The figures of one moment, in milliseconds of this browser's clock. */
export interface Sample {
  at: number;
  figures: Figures;
}

/** Return the sum of the values with these labels; null when the server does not know the figure. */
export function valueOf(figures: Figures, name: string, labels: Record<string, string> = {}): number | null {
  const entries = figures[name];
  if (!entries) return null;
  return entries
    .filter((entry) => Object.entries(labels).every(([label, value]) => entry.labels[label] === value))
    .reduce((total, entry) => total + entry.value, 0);
}

/** Return by how much a counter grew a second; one that is smaller than before began anew. */
export function rateOf(now: Sample, before: Sample, name: string, labels: Record<string, string> = {}): number | null {
  const [new_, old] = [valueOf(now.figures, name, labels), valueOf(before.figures, name, labels)];
  const seconds = (now.at - before.at) / 1000;
  if (new_ === null || seconds <= 0) return null;
  return (old === null || new_ < old ? new_ : new_ - old) / seconds;
}

/** Return the value that this share of what was measured since `before` did not exceed; null when nothing was. */
export function quantileOf(share: number, now: Figures, before: Figures | null, name: string): number | null {
  const old = new Map((before?.[name] ?? []).map((entry) => [entry.labels["le"], entry.value]));
  const hasRestarted = (now[name] ?? []).some((entry) => entry.value < (old.get(entry.labels["le"]) ?? 0));
  const buckets = (now[name] ?? [])
    .map((entry) => ({
      bound: entry.labels["le"] === "+Inf" ? Infinity : Number(entry.labels["le"]),
      count: entry.value - (hasRestarted ? 0 : (old.get(entry.labels["le"]) ?? 0)),
    }))
    .sort((left, right) => left.bound - right.bound);
  const total = buckets.at(-1)?.count ?? 0;
  if (total <= 0) return null;
  const rank = share * total;
  let [low, below] = [0, 0];
  for (const { bound, count } of buckets) {
    if (count >= rank && count > below) {
      return bound === Infinity ? low : low + ((bound - low) * (rank - below)) / (count - below);
    }
    [low, below] = [bound, count];
  }
  return low;
}

/** Return samples with one more, without those older than a span. */
export function withSample(samples: readonly Sample[], sample: Sample, spanMs: number): Sample[] {
  if (samples.at(-1)?.at === sample.at) return [...samples];
  return [...samples, sample].filter((each) => sample.at - each.at <= spanMs);
}

/** Return one value for each pair of samples that follow each other; null where there is none. */
export function series(
  samples: readonly Sample[],
  value: (now: Sample, before: Sample) => number | null,
): { times: number[]; values: (number | null)[] } {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (let at = 1; at < samples.length; at += 1) {
    const [before, now] = [samples[at - 1], samples[at]];
    if (!before || !now) continue;
    times.push(now.at / 1000);
    values.push(value(now, before));
  }
  return { times, values };
}

/** Return which share of the files that scans judged had been read before. */
export function cacheShare(figures: Figures): number | null {
  const [judged, read] = [valueOf(figures, "holdfast_organiser_verdicts_total"), valueOf(figures, "holdfast_organiser_files_read_total")];
  if (judged === null || read === null || judged <= 0) return null;
  return Math.max(0, 1 - read / judged);
}
