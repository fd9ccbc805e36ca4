/**
 * A diff of any length, of the server's hunks: unified or side by side, wrapped or not, only the rows in view in the page.
 * It knows nothing of reviews: who uses it draws the head of a hunk and hears which hunks were on screen.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState, type ReactNode, type Ref, type RefObject } from "react";
import { lineParts } from "../names";
import classes from "./diff.module.css";
import { colourPieces, spansOf, type DiffColours } from "./colours";
import { makeRows, type DiffLine, type DiffModel, type DiffRow, type Hunk } from "./hunks";
import { markWords, type Piece } from "./words";

export interface DiffHandle {
  scrollToHunk: (index: number) => void;
}

export interface DiffProps {
  model: DiffModel;
  view: "split" | "unified";
  wrap: boolean;
  label: string;
  /** What scrolls: several diffs may share one scroll. */
  scroller: RefObject<HTMLElement | null>;
  renderHead: (hunk: Hunk) => ReactNode;
  isLeftOut?: (hunk: Hunk) => boolean;
  activeHunk?: number;
  onSeen?: (hashes: string[]) => void;
  /** The colours of both texts, once they are known. */
  colours?: DiffColours | undefined;
  ref?: Ref<DiffHandle>;
}

const LINE_HEIGHT = 20;
const HEAD_HEIGHT = 36;
const GAP_HEIGHT = 28;
const SEEN_MS = 700;
const CHAR_WIDTH = 7.83;
const MAX_INDENT = 24;
const MAX_ROWS = 2 ** 24;

export function Diff(props: DiffProps) {
  const { model, view, wrap, label, scroller, renderHead, isLeftOut, activeHunk, onSeen, colours, ref } = props;
  const [openGaps, setOpenGaps] = useState<ReadonlySet<string>>(() => new Set());
  const rows = useMemo(() => makeRows(model, view, openGaps), [model, view, openGaps]);
  const container = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  const width = useWidth(container);
  const columns = Math.max(20, Math.floor((width / (view === "split" ? 2 : 1) - (model.digits * 2 + 4) * CHAR_WIDTH) / CHAR_WIDTH));

  // Numbers, since tens of thousands of keys are made at once: heights are of one layout, and in another one every row is new.
  const layout = (openGaps.size * 4096 + (wrap ? columns : 0) * 2 + (view === "split" ? 1 : 0)) * MAX_ROWS;
  // Both stay the same functions from one scroll to the next: with others, every row would be placed anew.
  const estimateSize = useCallback((index: number) => estimate(rows[index], wrap ? columns : Infinity), [rows, wrap, columns]);
  const getItemKey = useCallback((index: number) => layout + index, [layout]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize,
    getItemKey,
    scrollMargin: margin,
    overscan: 16,
  });
  useLayoutEffect(() => {
    const element = container.current;
    const outer = scroller.current;
    if (!element || !outer) return;
    const place = () => {
      setMargin(element.getBoundingClientRect().top - outer.getBoundingClientRect().top + outer.scrollTop);
    };
    place();
    const observer = new ResizeObserver(place);
    for (const child of outer.children) observer.observe(child);
    return () => observer.disconnect();
  }, [scroller]);

  const heads = useMemo(() => headIndexes(rows), [rows]);
  useImperativeHandle(ref, () => ({
    scrollToHunk: (index: number) => {
      const row = heads[index];
      if (row !== undefined) virtual.scrollToIndex(row, { align: "start" });
    },
  }));
  useSeen(rows, virtual.range?.startIndex ?? 0, virtual.range?.endIndex ?? -1, onSeen);

  const items = virtual.getVirtualItems();
  const minWidth = wrap ? "100%" : `${(model.longest + model.digits * 2 + 6) * (view === "split" ? 2 : 1)}ch`;
  return (
    <div
      ref={container}
      className={classes.diff}
      data-view={view}
      data-wrap={wrap}
      role="group"
      aria-label={label}
      style={{ height: virtual.getTotalSize(), minWidth, "--digits": `${model.digits}ch` } as React.CSSProperties}
    >
      {items.map((item) => {
        const row = rows[item.index];
        if (!row) return null;
        return (
          <div
            key={item.key}
            data-index={item.index}
            ref={virtual.measureElement}
            className={classes.slot}
            style={{ transform: `translateY(${item.start - margin}px)` }}
          >
            {row.type === "gap" ? (
              <Gap count={row.count} onOpen={() => setOpenGaps(new Set([...openGaps, row.id]))} />
            ) : row.type === "hunk" ? (
              <div className={classes.head} data-active={row.hunk.index === activeHunk}>
                {renderHead(row.hunk)}
              </div>
            ) : (
              <Line row={row} colours={colours} isOut={row.hunk !== null && (isLeftOut?.(row.hunk) ?? false)} />
            )}
          </div>
        );
      })}
    </div>
  );
}

function estimate(row: DiffRow | undefined, columns: number): number {
  if (!row || row.type === "gap") return GAP_HEIGHT;
  if (row.type === "hunk") return HEAD_HEIGHT;
  const longest = row.type === "line" ? row.line.text.length : Math.max(row.left?.text.length ?? 0, row.right?.text.length ?? 0);
  return LINE_HEIGHT * Math.max(1, Math.ceil(longest / columns));
}

function headIndexes(rows: readonly DiffRow[]): number[] {
  const heads: number[] = [];
  rows.forEach((row, at) => {
    if (row.type === "hunk") heads.push(at);
  });
  return heads;
}

function useWidth(container: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(1000);
  useLayoutEffect(() => {
    const parent = container.current?.parentElement;
    if (!parent) return;
    const observer = new ResizeObserver(() => setWidth(parent.clientWidth));
    observer.observe(parent);
    return () => observer.disconnect();
  }, [container]);
  return width;
}

/** Tell which hunks were on screen to their end for a moment. */
function useSeen(rows: readonly DiffRow[], first: number, last: number, onSeen: DiffProps["onSeen"]): void {
  useEffect(() => {
    if (!onSeen || last < first) return;
    const timer = setTimeout(() => {
      if (document.hidden) return;
      const hashes: string[] = [];
      for (let at = first; at <= last; at += 1) {
        const hunk = hunkOf(rows[at]);
        if (hunk && hunkOf(rows[at + 1]) !== hunk) hashes.push(hunk.hash);
      }
      if (hashes.length > 0) onSeen(hashes);
    }, SEEN_MS);
    return () => clearTimeout(timer);
  }, [rows, first, last, onSeen]);
}

function hunkOf(row: DiffRow | undefined): Hunk | null {
  return row === undefined || row.type === "gap" ? null : row.hunk;
}

function Gap({ count, onOpen }: { count: number; onOpen: () => void }) {
  const text = `${count.toLocaleString("en-US")} ${count === 1 ? "line" : "lines"} alike`;
  return (
    <button type="button" className={classes.gap} onClick={onOpen} title="Show them">
      <span aria-hidden>⋯</span> {text}
    </button>
  );
}

interface LineProps {
  row: Extract<DiffRow, { type: "line" | "pair" }>;
  colours: DiffColours | undefined;
  isOut: boolean;
}

const Line = memo(function Line({ row, colours, isOut }: LineProps) {
  if (row.type === "line") {
    const { line, partner } = row;
    return (
      <div className={classes.line} data-kind={line.kind} data-out={isOut || undefined}>
        <span className={classes.number} data-n={line.before ?? ""} data-side="before" />
        <span className={classes.number} data-n={line.after ?? ""} data-side="after" />
        <Code line={line} partner={partner} colours={colours} />
      </div>
    );
  }
  const { left, right } = row;
  return (
    <div className={classes.pair} data-out={isOut || undefined}>
      <Side line={left} partner={right} number={left?.before} colours={colours} />
      <Side line={right} partner={left} number={right?.after} colours={colours} />
    </div>
  );
});

interface SideProps {
  line: DiffLine | null;
  partner: DiffLine | null;
  number: number | undefined;
  colours: DiffColours | undefined;
}

function Side({ line, partner, number, colours }: SideProps) {
  return (
    <div className={classes.side} data-kind={line?.kind ?? "none"}>
      <span className={classes.number} data-n={number ?? ""} />
      {line ? <Code line={line} partner={partner ?? undefined} colours={colours} /> : <span />}
    </div>
  );
}

const SIGNS = { add: "+", remove: "−", same: "" } as const;
const SPOKEN = { add: "added: ", remove: "removed: ", same: "" } as const;

function Code({ line, partner, colours }: { line: DiffLine; partner: DiffLine | undefined; colours: DiffColours | undefined }) {
  const marked: Piece[] | null = line.kind !== "same" && partner && partner.kind !== "same" ? markWords(line.text, partner.text) : null;
  const spans = spansOf(line, colours);
  const pieces = marked || spans.length > 0 ? colourPieces(marked ?? [{ text: line.text, isChanged: false }], spans) : null;
  return (
    <>
      <span className={classes.sign} data-sign={SIGNS[line.kind]} aria-hidden />
      <code className={classes.code} style={{ "--hang": hangOf(line.text) } as React.CSSProperties}>
        {line.kind !== "same" && <span className="hf-visually-hidden">{SPOKEN[line.kind]}</span>}
        {pieces
          ? pieces.map((piece, at) => (
              <span key={at} className={piece.isChanged ? classes.word : undefined} data-kind={piece.kind || undefined}>
                <Text text={piece.text} />
              </span>
            ))
          : <Text text={line.text} />}
        {line.text.endsWith("\r") && partner && !partner.text.endsWith("\r") && <span className={classes.unended}>CRLF</span>}
        {line.isUnended && <span className={classes.unended}>no line end</span>}
      </code>
    </>
  );
}

/** Return by how many characters the rest of a wrapped line stands in: two more than the line itself. */
function hangOf(text: string): number {
  const blank = /^[ \t]*/.exec(text)?.[0] ?? "";
  return Math.min(blank.length + 3 * (blank.split("\t").length - 1), MAX_INDENT) + 2;
}

/** Show text of a file: what would not be seen stands there as its code point. */
function Text({ text }: { text: string }) {
  const parts = lineParts(text.endsWith("\r") ? text.slice(0, -1) : text);
  return parts.map((part, at) =>
    part.isHidden ? (
      <span key={at} className={classes.hidden} title="A character that is not seen">
        {part.text}
      </span>
    ) : (
      part.text
    ),
  );
}
