/**
 * A virtual tree with the keys of the ARIA tree pattern; who uses it holds what is open and fetches children.
 * All rows have one height, so what is in view follows from the scroll alone, and 100,000 rows cost what is in view.
 */
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { moveOf, type RowList, type TreeNode, type TreeRow } from "./flatten";
import classes from "./tree.module.css";

export interface TreeProps<N extends TreeNode> {
  label: string;
  /** Every row, or a list that knows each by its index; then `activeIndex` says which one is selected. */
  rows: readonly TreeRow<N>[] | RowList<N>;
  selected: string | null;
  activeIndex?: number;
  rowHeight?: number;
  onSelect: (node: N, by: "key" | "pointer", index: number) => void;
  /** Enter or double click. */
  onEnter: (node: N) => void;
  onOpen: (node: N, isOpen: boolean) => void;
  renderRow: (row: TreeRow<N>) => ReactNode;
  onRange?: (first: number, last: number) => void;
}

const OVERSCAN = 12;

export function Tree<N extends TreeNode>(props: TreeProps<N>) {
  const { label, rows, selected, activeIndex, rowHeight = 28, onSelect, onEnter, onOpen, renderRow, onRange } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ first: 0, last: -1 });
  const active = activeIndex ?? ("findIndex" in rows ? rows.findIndex((row) => row.node.id === selected) : -1);
  const count = rows.length;
  const look = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - OVERSCAN);
    const last = Math.min(count - 1, Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + OVERSCAN);
    setRange((before) => (before.first === first && before.last === last ? before : { first, last }));
  }, [count, rowHeight]);
  useLayoutEffect(() => {
    look();
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [look]);
  const newestLook = useRef(look);
  useLayoutEffect(() => {
    newestLook.current = look;
  }, [look]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || active < 0) return;
    const top = active * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = top + rowHeight - element.clientHeight;
    newestLook.current();
  }, [active, rowHeight]);
  const first = Math.min(range.first, Math.max(0, count - 1));
  const last = Math.min(range.last, count - 1);
  useEffect(() => onRange?.(first, last), [onRange, first, last, rows]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 1);
    const move = moveOf(event.key, active, rows, page);
    const row = move ? rows.at(move.index) : undefined;
    if (!move || !row) return;
    event.preventDefault();
    event.stopPropagation();
    if (move.type === "focus") onSelect(row.node, "key", move.index);
    else if (move.type === "enter") onEnter(row.node);
    else onOpen(row.node, move.type === "open");
  };

  return (
    <div
      ref={scroller}
      role="tree"
      aria-label={label}
      aria-activedescendant={active >= 0 && active >= first && active <= last ? rowId(label, active) : undefined}
      tabIndex={0}
      className={classes.tree}
      onKeyDown={onKeyDown}
      onScroll={look}
    >
      <div role="none" className={classes.virtual} style={{ height: count * rowHeight }}>
        {Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => {
          const index = first + at;
          const row = rows.at(index);
          if (!row) return null;
          return (
            <div
              key={index}
              id={rowId(label, index)}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-posinset={row.position}
              aria-setsize={row.setSize}
              aria-selected={index === active}
              {...(row.node.isFolder ? { "aria-expanded": row.isOpen } : {})}
              className={classes.row}
              style={{ height: rowHeight, transform: `translateY(${index * rowHeight}px)`, paddingInlineStart: 8 + row.depth * 16 }}
              onClick={() => onSelect(row.node, "pointer", index)}
              onDoubleClick={() => onEnter(row.node)}
            >
              <span
                className={classes.twist}
                data-open={row.isOpen}
                data-folder={row.node.isFolder}
                aria-hidden
                onClick={(event) => {
                  if (!row.node.isFolder) return;
                  event.stopPropagation();
                  onOpen(row.node, !row.isOpen);
                }}
              />
              {renderRow(row)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function rowId(label: string, index: number): string {
  return `tree-${label.replace(/\W+/g, "-")}-${index}`;
}
