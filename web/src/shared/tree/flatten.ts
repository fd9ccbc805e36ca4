/** Pure: a tree as the list of its visible rows, and where a key leads in it. */

export interface TreeNode {
  id: string;
  name: string;
  isFolder: boolean;
}

export interface TreeRow<N extends TreeNode> {
  node: N;
  depth: number;
  isOpen: boolean;
  position: number;
  setSize: number;
  parent: number;
}

/** The rows of a tree that is too large to be listed: any of them by its index, which is in range. */
export interface RowList<N extends TreeNode> {
  readonly length: number;
  at: (index: number) => TreeRow<N> | undefined;
}

/** Return the visible rows: each node, and beneath an open folder its children. `undefined` children are not fetched yet. */
export function flatten<N extends TreeNode>(
  roots: readonly N[],
  open: ReadonlySet<string>,
  childrenOf: (id: string) => readonly N[] | undefined,
): TreeRow<N>[] {
  const rows: TreeRow<N>[] = [];
  const add = (nodes: readonly N[], depth: number, parent: number) => {
    nodes.forEach((node, at) => {
      const isOpen = node.isFolder && open.has(node.id);
      rows.push({ node, depth, isOpen, position: at + 1, setSize: nodes.length, parent });
      if (isOpen) add(childrenOf(node.id) ?? [], depth + 1, rows.length - 1);
    });
  };
  add(roots, 0, -1);
  return rows;
}

export type TreeMove = { type: "focus"; index: number } | { type: "open" | "close" | "enter"; index: number } | null;

/** The keys of the tree itself; every other one is the page's, or the browser's, such as Tab. */
const MOVES: ReadonlySet<string> = new Set(["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "PageDown", "PageUp", "Home", "End", "Enter"]);

/** Return what a key does at a row, as the ARIA tree pattern says. */
export function moveOf(key: string, index: number, rows: RowList<TreeNode>, page: number): TreeMove {
  const row = index < 0 ? undefined : rows.at(index);
  if (!row) return rows.length > 0 && MOVES.has(key) ? { type: "focus", index: 0 } : null;
  const focus = (to: number): TreeMove => ({ type: "focus", index: Math.max(0, Math.min(rows.length - 1, to)) });
  switch (key) {
    case "ArrowDown":
      return focus(index + 1);
    case "ArrowUp":
      return focus(index - 1);
    case "PageDown":
      return focus(index + page);
    case "PageUp":
      return focus(index - page);
    case "Home":
      return focus(0);
    case "End":
      return focus(rows.length - 1);
    case "ArrowRight":
      if (!row.node.isFolder) return null;
      if (!row.isOpen) return { type: "open", index };
      return index + 1 < rows.length && (rows.at(index + 1)?.depth ?? -1) > row.depth ? focus(index + 1) : null;
    case "ArrowLeft":
      if (row.isOpen) return { type: "close", index };
      return row.parent >= 0 ? focus(row.parent) : null;
    case "Enter":
      return { type: "enter", index };
    default:
      return null;
  }
}
