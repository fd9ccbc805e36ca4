/** The files of a plan: folders with their files, or one list, with keys, choices, dragging and what can be done with a row. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useKeys } from "@/shared/keys";
import { Fault, Loading } from "@/shared/states";
import { flatten, type TreeRow } from "@/shared/tree/flatten";
import { Tree } from "@/shared/tree/Tree";
import classes from "../organise.module.css";
import { decisionOn, type Staging } from "../rules/staging";
import { listTargets, nestFolders, type FolderNode } from "../rules/tree";
import { FileRow, FolderRow } from "./FileRow";
import { RowMenu, type MenuAt } from "./RowMenu";
import { usePlanRows, type PlanHead, type PlanNode, type PlanRow, type PlanRowsArguments } from "./rows";

export interface PlanTreeProps {
  head: PlanHead;
  /** The folders of the tree; undefined until they are there. */
  folders: PlanHead["folders"] | undefined;
  base: PlanRowsArguments;
  isFlat: boolean;
  /** Whether folders are the targets of moves; else they are where everything lies. */
  isByTarget: boolean;
  label: string;
  empty: string;
  isPhone: boolean;
  isBusy: boolean;
  canCorrect: boolean;
  canUndo: boolean;
  staging: Staging;
  marked: ReadonlySet<string>;
  chosen: ReadonlyMap<string, PlanRow>;
  onChoose: (chosen: ReadonlyMap<string, PlanRow>) => void;
  onDecide: (rows: readonly PlanRow[], folder: string | null) => void;
  onMoveTo: (rows: readonly PlanRow[]) => void;
  onMoveFolder: (folder: string) => void;
  onExplain: (row: PlanRow) => void;
  onUndo: (rows: readonly PlanRow[]) => void;
  onHashes: (hashes: readonly string[]) => void;
}

export function PlanTree(props: PlanTreeProps) {
  const { head, folders, base, isFlat, isByTarget, label, empty, isPhone, isBusy, canCorrect, canUndo, staging, marked, chosen } = props;
  const { onChoose, onDecide, onMoveTo, onMoveFolder, onExplain, onUndo, onHashes } = props;
  const list = usePlanRows(base, isFlat);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState<string | null>(null);
  const [menu, setMenu] = useState<MenuAt | null>(null);
  const anchor = useRef<string | null>(null);
  const { files, total, show } = list;
  const rows = useMemo<TreeRow<PlanNode>[]>(() => {
    if (isFlat) return flatten<PlanNode>(files(null, total ?? 0), new Set(), () => undefined);
    const { roots, own } = isByTarget ? { roots: listTargets(folders ?? []), own: 0 } : nestFolders(folders ?? []);
    const nodes = new Map<string, FolderNode>();
    const add = (node: FolderNode) => {
      nodes.set(node.id, node);
      node.folders.forEach(add);
    };
    roots.forEach(add);
    const childrenOf = (id: string): PlanNode[] => {
      const node = nodes.get(id);
      return node ? [...node.folders, ...files(node.path, node.own)] : [];
    };
    return flatten<PlanNode>([...roots, ...files("", own)], open, childrenOf);
  }, [isFlat, isByTarget, folders, files, total, open]);
  const at = Math.max(0, rows.findIndex((row) => row.node.id === active));
  const activeNode = rows[at]?.node;
  const activeRow = activeNode?.type === "file" ? activeNode.row : undefined;
  const canChoose = canCorrect || canUndo;

  const setOpenOf = (node: PlanNode, isOpen: boolean) => {
    const next = new Set(open);
    if (isOpen) next.add(node.id);
    else next.delete(node.id);
    setOpen(next);
  };
  const onRange = useCallback(
    (first: number, last: number) => show(rows.slice(Math.max(0, first), last + 1)),
    [show, rows],
  );
  const moveTo = (to: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (row) setActive(row.node.id);
  };
  const toggle = (row: PlanRow, isRange: boolean) => {
    const next = new Map(chosen);
    const all = rows.flatMap(({ node }) => (node.type === "file" && node.row ? [node.row] : []));
    const from = all.findIndex((each) => each.address === anchor.current);
    const to = all.findIndex((each) => each.address === row.address);
    if (isRange && from >= 0 && to >= 0) for (const each of all.slice(Math.min(from, to), Math.max(from, to) + 1)) next.set(each.address, each);
    else if (!next.delete(row.address)) next.set(row.address, row);
    anchor.current = row.address;
    onChoose(next);
  };
  /** What an action on a row is about: all chosen rows when it is one of them. */
  const rowsFor = (row: PlanRow | undefined): readonly PlanRow[] => {
    if (row && !chosen.has(row.address)) return [row];
    return [...chosen.values()];
  };
  const askWhere = () => {
    if (chosen.size === 0 && activeNode?.type === "folder" && isByTarget) onMoveFolder(activeNode.path);
    else if (chosen.size > 0) onMoveTo([...chosen.values()]);
    else if (activeRow) onMoveTo([activeRow]);
  };
  const enter = (node: PlanNode) => {
    if (node.type === "folder") setOpenOf(node, !open.has(node.id));
    else if (node.row) onExplain(node.row);
  };
  const hasRows = chosen.size > 0 || activeRow !== undefined;
  useKeys("Files of the plan", [
    { keys: "j", label: "Next row", run: () => moveTo(active === null ? 0 : at + 1), isMotion: true },
    { keys: "k", label: "Previous row", run: () => moveTo(at - 1), isMotion: true },
    { keys: "Enter", label: "Open the folder, or explain the file", run: () => activeNode && enter(activeNode), isMotion: true },
    { keys: "x", label: "Choose the file", run: () => activeRow && toggle(activeRow, false), isOff: !canChoose || !activeRow },
    { keys: "e", label: "Explain the file", run: () => activeRow && onExplain(activeRow), isOff: !activeRow },
    { keys: "m", label: "Move to…", run: askWhere, isOff: !canCorrect },
    { keys: "l", label: "Leave it where it is", run: () => onDecide(rowsFor(activeRow), null), isOff: !canCorrect || !hasRows },
  ]);
  const hashText = list.hashes.join(" ");
  useEffect(() => onHashes(hashText === "" ? [] : hashText.split(" ")), [hashText, onHashes]);

  if (list.error || (isFlat ? total === undefined : folders === undefined)) {
    return (
      <div className={classes.waiting}>
        {list.error ? <Fault error={list.error} onRetry={list.retry} /> : <Loading rows={8} label="Loading the files" />}
      </div>
    );
  }
  if (rows.length === 0) return <p className={classes.none}>{empty}</p>;
  return (
    <div className={classes.tree}>
      <Tree
        label={label}
        rows={rows}
        selected={active ?? rows[0]?.node.id ?? null}
        rowHeight={isPhone ? 52 : 32}
        onSelect={(node) => setActive(node.id)}
        onEnter={enter}
        onOpen={setOpenOf}
        onRange={onRange}
        renderRow={({ node }) =>
          node.type === "folder" ? (
            <FolderRow
              node={node}
              moves={head.totals["moves"] ?? 0}
              isBusy={isBusy}
              isTarget={isByTarget}
              onDrop={canCorrect && isByTarget ? (dropped) => onDecide(dropped, node.path) : null}
            />
          ) : (
            <FileRow
              row={node.row}
              showsPath={isFlat || isByTarget}
              showsTarget={isFlat}
              decision={node.row ? decisionOn(staging, node.row.address) : undefined}
              isMarked={node.row !== undefined && marked.has(node.row.path)}
              isChosen={node.row !== undefined && chosen.has(node.row.address)}
              canChoose={canChoose}
              canDrag={canCorrect && node.row?.status !== "NOT_SCANNED"}
              rowsToDrag={rowsFor}
              onToggle={toggle}
              onMenu={(row, x, y) => {
                setActive(node.id);
                setMenu({ rows: rowsFor(row), row, x, y });
              }}
            />
          )
        }
      />
      {menu && (
        <RowMenu
          menu={menu}
          shelves={head.shelves}
          canCorrect={canCorrect}
          canUndo={canUndo}
          onDecide={onDecide}
          onMoveTo={onMoveTo}
          onExplain={onExplain}
          onUndo={onUndo}
          onClose={() => setMenu(null)}
        />
      )}
    </div>
  );
}
