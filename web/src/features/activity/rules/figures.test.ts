import { describe, expect, it } from "vitest";
import { cacheShare, quantileOf, rateOf, series, valueOf, withSample, type Figures, type Sample } from "./figures";

const buckets = (...counts: number[]): Figures => ({
  b: ["0.01", "0.1", "+Inf"].map((le, at) => ({ labels: { le }, value: counts[at] ?? 0 })),
});
const counter = (at: number, value: number): Sample => ({ at, figures: { c: [{ labels: { s: "ok" }, value }] } });

describe("figures", () => {
  it("are added up by their labels, and are null when the server does not know them", () => {
    const figures = { c: [{ labels: { s: "ok" }, value: 3 }, { labels: { s: "error" }, value: 1 }] };
    expect([valueOf(figures, "c"), valueOf(figures, "c", { s: "error" }), valueOf(figures, "d")]).toEqual([4, 1, null]);
  });

  it("grow by the second, also over a restart", () => {
    expect(rateOf(counter(3000, 16), counter(1000, 10), "c")).toBe(3);
    expect(rateOf(counter(3000, 4), counter(1000, 10), "c")).toBe(2);
    expect(rateOf(counter(1000, 4), counter(1000, 4), "c")).toBeNull();
  });

  it("have quantiles of what was measured between two moments", () => {
    expect(quantileOf(0.5, buckets(10, 10, 10), null, "b")).toBeCloseTo(0.005);
    expect(quantileOf(0.5, buckets(10, 20, 20), buckets(10, 10, 10), "b")).toBeCloseTo(0.055);
    expect(quantileOf(0.5, buckets(10, 10, 10), buckets(10, 10, 10), "b")).toBeNull();
    expect(quantileOf(0.99, buckets(0, 0, 5), null, "b")).toBe(0.1);
    expect(quantileOf(0.5, buckets(2, 2, 2), buckets(10, 10, 10), "b")).toBeCloseTo(0.005);
  });

  it("are kept for a span", () => {
    const samples = withSample(withSample([counter(0, 1)], counter(2000, 2), 3000), counter(4000, 5), 3000);
    expect(samples.map((sample) => sample.at)).toEqual([2000, 4000]);
    expect(series(samples, (now, before) => rateOf(now, before, "c"))).toEqual({ times: [4], values: [1.5] });
  });

  it("say which share of scanned files was in the cache", () => {
    const figure = (value: number) => [{ labels: {}, value }];
    expect(cacheShare({ holdfast_organiser_verdicts_total: figure(200), holdfast_organiser_files_read_total: figure(6) })).toBe(0.97);
    expect(cacheShare({})).toBeNull();
  });
});
