/** A virtual tree with the keys of the ARIA tree pattern; who uses it holds what is open and fetches children. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type KeyboardEvent, type ReactNode } from "react";
import { moveOf, type TreeNode, type TreeRow } from "./flatten";
import classes from "./tree.module.css";

export interface TreeProps<N extends TreeNode> {
  label: string;
  rows: readonly TreeRow<N>[];
  selected: string | null;
  rowHeight?: number;
  onSelect: (node: N) => void;
  /** Enter or double click. */
  onEnter: (node: N) => void;
  onOpen: (node: N, isOpen: boolean) => void;
  renderRow: (row: TreeRow<N>) => ReactNode;
  onRange?: (first: number, last: number) => void;
}

export function Tree<N extends TreeNode>(props: TreeProps<N>) {
  const { label, rows, selected, rowHeight = 28, onSelect, onEnter, onOpen, renderRow, onRange } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const active = rows.findIndex((row) => row.node.id === selected);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => rows[index]?.node.id ?? index,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => onRange?.(first, last), [onRange, first, last]);
  useEffect(() => {
    if (active >= 0) virtual.scrollToIndex(active);
  }, [virtual, active]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 1);
    const move = moveOf(event.key, active, rows, page);
    const row = move ? rows[move.index] : undefined;
    if (!move || !row) return;
    event.preventDefault();
    event.stopPropagation();
    if (move.type === "focus") onSelect(row.node);
    else if (move.type === "enter") onEnter(row.node);
    else onOpen(row.node, move.type === "open");
  };

  return (
    <div
      ref={scroller}
      role="tree"
      aria-label={label}
      aria-activedescendant={items.some((item) => item.index === active) ? rowId(label, active) : undefined}
      tabIndex={0}
      className={classes.tree}
      onKeyDown={onKeyDown}
    >
      <div role="none" className={classes.virtual} style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          return (
            <div
              key={item.key}
              id={rowId(label, item.index)}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-posinset={row.position}
              aria-setsize={row.setSize}
              aria-selected={item.index === active}
              {...(row.node.isFolder ? { "aria-expanded": row.isOpen } : {})}
              className={classes.row}
              style={{ height: item.size, transform: `translateY(${item.start}px)`, paddingInlineStart: 8 + row.depth * 16 }}
              onClick={() => onSelect(row.node)}
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
