/** How the server is: figures of now, and lines of the minutes since this page was opened. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { call } from "@/api/client";
import { useConnection } from "@/api/hooks";
import { Plot } from "@/shared/Plot";
import { Command, Empty, Fault, Loading } from "@/shared/states";
import { formatDuration, formatSize, formatSpan } from "@/shared/times";
import classes from "../activity.module.css";
import { cacheShare, quantileOf, rateOf, series, valueOf, withSample, type Figures, type Sample } from "../rules/figures";

const POLL_MS = 2000;
const SPAN_MS = 10 * 60_000;
const CALL_SPANS = "holdfast_call_duration_seconds_bucket";
const LAGS = "mcp_files_index_visibility_lag_ms_bucket";
const QUEUE = "mcp_files_index_queue_depth";
const NOTHING = "Nothing was measured since this page was opened.";

export function Health() {
  const isLive = useConnection() === "live";
  const figures = useQuery({
    queryKey: ["figures"],
    queryFn: async ({ signal }) => ({ at: Date.now(), ...(await call("server_figures", {}, signal)) }),
    refetchInterval: POLL_MS,
    enabled: isLive,
  });
  const [samples, setSamples] = useState<Sample[]>([]);
  const newest = figures.data;
  useEffect(() => {
    if (newest) setSamples((old) => withSample(old, { at: newest.at, figures: newest.figures }, SPAN_MS));
  }, [newest]);

  return (
    <div className={classes.health}>
      {figures.isError && <Fault error={figures.error} onRetry={() => void figures.refetch()} />}
      {figures.isPending && <Loading rows={6} label="Reading the figures" />}
      {newest && !newest.is_measured && (
        <Empty title="Nothing is measured." command="holdfast config set observe.metrics.enabled true">
          Metrics are switched off in the settings.
        </Empty>
      )}
      {newest?.is_measured && (
        <>
          <Tiles figures={newest.figures} at={newest.at} />
          <Plots samples={samples} />
          <p className={classes.hint}>The same in a terminal, every two seconds:</p>
          <Command>holdfast status --watch</Command>
        </>
      )}
    </div>
  );
}

function Tiles({ figures, at }: { figures: Figures; at: number }) {
  const started = valueOf(figures, "process_start_time_seconds");
  const [used, limit] = [valueOf(figures, "holdfast_history_bytes"), valueOf(figures, "holdfast_history_limit_bytes")];
  const oldest = valueOf(figures, "holdfast_index_oldest_job_seconds", { stage: "words" });
  const slo = valueOf(figures, "holdfast_index_slo_seconds");
  const lag = quantileOf(0.95, figures, null, LAGS);
  const share = cacheShare(figures);
  const free = valueOf(figures, "holdfast_disk_free_bytes");
  const memory = valueOf(figures, "process_resident_memory_bytes");
  const rows: [string, string, string][] = [
    ["Server", valueOf(figures, "holdfast_database_up") === 0 ? "the database does not answer" : "up", started ? `for ${formatSpan(at / 1000 - started)}` : ""],
    ["Index", lag === null ? "nothing indexed yet" : `fresh after ${formatDuration(lag)}`, lag === null ? "" : `p95${slo ? `, at most ${formatSpan(slo)} wanted` : ""}`],
    ["Queue", String(valueOf(figures, QUEUE) ?? "unknown"), oldest ? `the oldest for ${formatSpan(oldest)}` : "jobs of the index"],
    ["Calls", (valueOf(figures, "holdfast_calls_total") ?? 0).toLocaleString("en-US"), `${valueOf(figures, "holdfast_calls_total", { status: "error" }) ?? 0} ended with an error`],
    ["Scan cache", share === null ? "no scan yet" : `${Math.round(share * 100)} %`, share === null ? "" : "of files were known and not read again"],
    ["Undo history", used === null ? "unknown" : formatSize(used), limit ? `of ${formatSize(limit)}` : ""],
    ["Memory", memory === null ? "unknown" : formatSize(memory), `${valueOf(figures, "holdfast_connections") ?? 0} connections`],
    ["Disk", free === null ? "unknown" : `${formatSize(free)} free`, ""],
  ];
  return (
    <dl className={classes.tiles}>
      {rows.map(([term, value, more]) => (
        <div key={term} className={classes.tile}>
          <dt>{term}</dt>
          <dd>{value}</dd>
          <dd className={classes.dim}>{more}</dd>
        </div>
      ))}
    </dl>
  );
}

function Plots({ samples }: { samples: readonly Sample[] }) {
  const lines = useMemo(() => {
    const quantile = (share: number, name: string, factor: number) =>
      series(samples, (now, before) => {
        const value = quantileOf(share, now.figures, before.figures, name);
        return value === null ? null : value * factor;
      });
    return {
      calls: series(samples, (now, before) => rateOf(now, before, "holdfast_calls_total")),
      errors: series(samples, (now, before) => rateOf(now, before, "holdfast_calls_total", { status: "error" })),
      p95: quantile(0.95, CALL_SPANS, 1000),
      p50: quantile(0.5, CALL_SPANS, 1000),
      queue: series(samples, (now) => valueOf(now.figures, QUEUE)),
      lag: quantile(0.95, LAGS, 1),
      cache: series(samples, (now) => cacheShare(now.figures)),
      search: quantile(0.95, "mcp_files_search_latency_ms_bucket", 1),
    };
  }, [samples]);
  const last = (values: readonly (number | null)[], format: (value: number) => string, none = "none yet") => {
    const value = values.findLast((each) => each !== null);
    return typeof value === "number" ? format(value) : none;
  };
  const p95 = (value: number) => `p95 ${formatDuration(value)}`;
  const perSecond = (value: number) => `${value.toFixed(1)}/s`;
  const whole = (value: number) => (Number.isInteger(value) ? String(value) : "");
  const percent = (value: number) => `${Math.round(value * 100)} %`;
  return (
    <div className={classes.plots}>
      <Plot title="Calls" now={last(lines.calls.values, perSecond, "…")} times={lines.calls.times} format={perSecond}
        lines={[{ label: "all", values: lines.calls.values }, { label: "errors", values: lines.errors.values }]} empty={NOTHING} />
      <Plot title="Latency of calls" now={last(lines.p95.values, p95)} times={lines.p95.times} format={formatDuration}
        lines={[{ label: "p95", values: lines.p95.values }, { label: "p50", values: lines.p50.values }]} empty={NOTHING} />
      <Plot title="Queue of the index" now={last(lines.queue.values, String, "…")} times={lines.queue.times} format={whole}
        lines={[{ label: "jobs", values: lines.queue.values }]} empty={NOTHING} />
      <Plot title="Freshness of the index" now={last(lines.lag.values, p95)} times={lines.lag.times} format={formatDuration}
        lines={[{ label: "p95", values: lines.lag.values }]} empty="No text was indexed since this page was opened." />
      <Plot title="Latency of searches" now={last(lines.search.values, p95)} times={lines.search.times} format={formatDuration}
        lines={[{ label: "p95", values: lines.search.values }]} empty="Nothing was searched since this page was opened." />
      <Plot title="Scan cache" now={last(lines.cache.values, percent)} times={lines.cache.times} format={percent} max={1}
        lines={[{ label: "files not read again", values: lines.cache.values }]} empty="No folder was scanned since the server started." />
    </div>
  );
}
