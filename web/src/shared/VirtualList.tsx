/** A list of any length with its true height: only the rows in view are in the page. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type ReactNode } from "react";
import classes from "./shared.module.css";

export interface VirtualListProps {
  count: number;
  rowHeight: number;
  label: string;
  renderRow: (index: number) => ReactNode;
  keyOf: (index: number) => string;
  /** Scroll this row into view when it changes. */
  activeIndex?: number;
  /** Called with the rows in view, so that more can be fetched. */
  onRange?: (first: number, last: number) => void;
  className?: string;
}

export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, label, renderRow, keyOf, activeIndex, onRange, className } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: keyOf,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (activeIndex !== undefined && activeIndex >= 0 && activeIndex < count) virtual.scrollToIndex(activeIndex);
  }, [virtual, activeIndex, count]);
  useEffect(() => {
    onRange?.(first, last);
  }, [onRange, first, last]);
  return (
    <div ref={scroller} className={`${classes.scroller} ${className ?? ""}`} tabIndex={-1}>
      <div role="list" aria-label={label} className={classes.virtual} style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => (
          <div
            key={item.key}
            role="listitem"
            aria-setsize={count}
            aria-posinset={item.index + 1}
            className={classes.row}
            style={{ height: item.size, transform: `translateY(${item.start}px)` }}
          >
            {renderRow(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
