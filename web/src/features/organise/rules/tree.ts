/** Pure: the folders of a plan as a tree whose files are fetched by page. */
import type { TreeNode } from "@/shared/tree/flatten";

export interface FolderFacts {
  folder: string;
  files: number;
  confidence: number;
  is_new?: boolean;
  done?: number;
}

export interface FolderNode extends TreeNode {
  type: "folder";
  /** The path from the planned folder, empty for that folder itself. */
  path: string;
  /** Files that lie in it directly; those come by page. */
  own: number;
  /** Files in it and in the folders below. */
  files: number;
  done: number;
  confidence: number;
  isNew: boolean;
  folders: FolderNode[];
}

/** Return the node of a folder that is shown by its whole path. */
function makeNode(path: string, name: string): FolderNode {
  return { id: `folder:${path}`, name, isFolder: true, type: "folder", path, own: 0, files: 0, done: 0, confidence: 0, isNew: false, folders: [] };
}

/** Return the targets of a plan in the order that they came, each by its whole path. */
export function listTargets(totals: readonly FolderFacts[]): FolderNode[] {
  return totals.map((total) => ({
    ...makeNode(total.folder, total.folder),
    own: total.files, files: total.files, done: total.done ?? 0, confidence: total.confidence, isNew: total.is_new ?? false,
  }));
}

/** Return folders as a tree below the planned one, by name; folders in between are added. */
export function nestFolders(totals: readonly FolderFacts[]): { roots: FolderNode[]; own: number } {
  const top = makeNode("", "");
  const nodes = new Map([["", top]]);
  const nodeAt = (path: string): FolderNode => {
    const known = nodes.get(path);
    if (known) return known;
    const slash = path.lastIndexOf("/");
    const node = makeNode(path, path.slice(slash + 1));
    nodes.set(path, node);
    nodeAt(slash < 0 ? "" : path.slice(0, slash)).folders.push(node);
    return node;
  };
  for (const total of totals) {
    const node = nodeAt(total.folder);
    node.own = total.files;
    node.done = total.done ?? 0;
    node.confidence = total.confidence;
    node.isNew = total.is_new ?? false;
  }
  const sum = (node: FolderNode): number => {
    node.folders.sort((one, other) => one.name.localeCompare(other.name));
    node.files = node.own;
    for (const folder of node.folders) node.files += sum(folder);
    return node.files;
  };
  sum(top);
  return { roots: top.folders, own: top.own };
}

/** Return the pages that a range of rows lies in. */
export function pagesOf(first: number, last: number, size: number): number[] {
  const pages: number[] = [];
  for (let page = Math.floor(first / size); page <= Math.floor(last / size); page += 1) pages.push(page);
  return pages;
}
