/** A small line plot over time; its newest value stands beside it as text, so that nobody has to read it off a line. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import classes from "./plot.module.css";

export interface PlotLine {
  label: string;
  values: readonly (number | null)[];
  isDim?: boolean;
}

export interface PlotProps {
  title: string;
  /** The newest value in words. */
  now: string;
  /** Seconds since 1970, one for each value. */
  times: readonly number[];
  lines: readonly PlotLine[];
  format: (value: number) => string;
  /** The highest value of the scale, when it has one. */
  max?: number;
  /** What it means when there is nothing to draw. */
  empty: string;
}

const HEIGHT = 120;
const DAY_SECONDS = 86_400;

/** Return a moment as the time of today, or its day. */
function clockTime(seconds: number): string {
  const moment = new Date(seconds * 1000);
  const isRecent = Date.now() / 1000 - seconds < DAY_SECONDS;
  return isRecent ? moment.toLocaleTimeString(undefined, { hour12: false }) : moment.toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

export function Plot({ title, now, times, lines, format, max, empty }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const hasData = lines.some((line) => line.values.some((value) => value !== null)) && times.length > 1;
  const shape = lines.map((line) => line.label).join("\n");
  const data = [times, ...lines.map((line) => line.values)] as unknown as uPlot.AlignedData;
  const newest = useRef({ data, format });
  useEffect(() => {
    newest.current = { data, format };
    plot.current?.setData(data);
  });
  useEffect(() => {
    const parent = box.current;
    if (!parent || !hasData) return;
    const colour = (name: string) => getComputedStyle(parent).getPropertyValue(name);
    const draw = () => {
      plot.current?.destroy();
      const axis = { stroke: colour("--hf-dim"), grid: { stroke: colour("--hf-line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
      plot.current = new uPlot(
        {
          width: parent.clientWidth,
          height: HEIGHT,
          legend: { show: false },
          cursor: { show: false },
          padding: [8, 8, 0, 0],
          scales: { x: { time: true }, y: { range: (_plot, _low, high) => [0, max ?? (high > 0 ? high * 1.15 : 1)] } },
          axes: [
            { ...axis, space: 90, size: 24, values: (_plot, splits) => splits.map(clockTime) },
            { ...axis, size: 60, space: 32, values: (_plot, splits) => splits.map((split) => newest.current.format(split)) },
          ],
          series: [
            {},
            ...shape.split("\n").map((label, at) => ({
              label,
              stroke: colour(at === 0 ? "--hf-accent" : "--hf-dim"),
              width: at === 0 ? 2 : 1,
              points: { show: newest.current.data[0].length < 30, size: 5 },
              spanGaps: true,
            })),
          ],
        },
        newest.current.data,
        parent,
      );
    };
    draw();
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: parent.clientWidth, height: HEIGHT }));
    sized.observe(parent);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ["data-mantine-color-scheme"] });
    return () => {
      sized.disconnect();
      themed.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [hasData, shape, max]);
  return (
    <figure className={classes.plot}>
      <figcaption className={classes.head}>
        <span className={classes.title}>{title}</span>
        <span className={classes.now}>{now}</span>
      </figcaption>
      {hasData ? <div ref={box} className={classes.box} aria-hidden /> : <p className={classes.empty}>{empty}</p>}
      {lines.length > 1 && hasData && (
        <p className={classes.legend}>
          {lines.map((line, at) => (
            <span key={line.label} data-dim={at > 0}>
              {line.label}
            </span>
          ))}
        </p>
      )}
    </figure>
  );
}
