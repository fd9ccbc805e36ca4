/** The tree of all roots and projects, with its filter and order. */
import { ActionIcon, NativeSelect, TextInput, Tooltip } from "@mantine/core";
import {
  IconDatabase,
  IconFile,
  IconFilePlus,
  IconFolder,
  IconFolderPlus,
  IconLink,
  IconPhoto,
  IconQuestionMark,
} from "@tabler/icons-react";
import { useCallback, useEffect, useRef, useState, useSyncExternalStore, type ComponentType } from "react";
import { useCanAct } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { displayName } from "@/shared/names";
import { formatSize } from "@/shared/times";
import type { TreeRow } from "@/shared/tree/flatten";
import { Tree } from "@/shared/tree/Tree";
import classes from "../files.module.css";
import { nameOf } from "../opened";
import { idOf, type Place } from "../rules/place";
import { isFolder, TOP, type FileNode } from "../rules/rows";
import { cursorOf, fileTree, type Order } from "../tree_model";
import type { Asked } from "./dialogs";

const FILTER_MS = 40;
const TYPING_MS = 250;
const ICONS: Record<string, ComponentType<{ size?: number; stroke?: number; "aria-hidden"?: boolean }>> = {
  root: IconFolder, project: IconDatabase, directory: IconFolder, file: IconFile, link: IconLink, other: IconQuestionMark,
};
const IMAGE = /\.(png|jpe?g|gif|webp|bmp|avif)$/i;

export function TreePane({ onOpen, onAsk }: { onOpen: (place: Place) => void; onAsk: (asked: Asked) => void }) {
  const { rows, cursor, active } = useSyncExternalStore(fileTree.watch, fileTree.look);
  const canAct = useCanAct();
  const filter = useRef<HTMLInputElement>(null);
  const pane = useRef<HTMLDivElement>(null);
  const node = active < 0 ? undefined : rows.at(active)?.node;
  const folder = fileTree.currentFolder();
  const focus = () => pane.current?.querySelector<HTMLElement>("[role=tree]")?.focus();
  const step = (by: number) => {
    const to = rows.at(Math.max(0, Math.min(rows.length - 1, active + by)));
    if (to) fileTree.select(cursorOf(to.node));
    focus();
  };
  const isLocal = folder?.kind === "local";
  useKeys("Files", [
    { keys: "j", label: "Next row", run: () => step(1), isMotion: true },
    { keys: "k", label: "Previous row", run: () => step(-1), isMotion: true },
    { keys: "/", label: "Filter this folder", run: () => filter.current?.focus() },
    { keys: "n", label: "New file", run: () => folder && onAsk({ what: "file", place: folder }), isOff: !canAct || !folder },
    { keys: "N", label: "New folder", run: () => folder && onAsk({ what: "folder", place: folder }), isOff: !canAct || !isLocal },
    { keys: "Delete", label: "Delete…", run: () => askFor(node, "delete", onAsk), isOff: !canAct, isMotion: true },
    { keys: "F2", label: "Rename or move", run: () => askFor(node, "move", onAsk), isOff: !canAct, isMotion: true },
  ]);

  const onSelect = useCallback(
    (selected: FileNode, by: "key" | "pointer") => {
      fileTree.select(cursorOf(selected));
      if (by === "pointer" && selected.entry) onOpen(selected.entry.place);
    },
    [onOpen],
  );
  const onEnter = useCallback(
    (entered: FileNode) => {
      if (!entered.entry) return;
      if (isFolder(entered.entry)) fileTree.setOpen(entered.entry, true);
      onOpen(entered.entry.place);
    },
    [onOpen],
  );
  return (
    <div ref={pane} className={classes.treePane}>
      <div className={classes.treeHead}>
        <Filter key={folder ? idOf(folder) : ""} folder={folder} ref={filter} onDone={focus} />
        <NativeSelect
          aria-label="Order of local folders"
          size="xs"
          value={fileTree.order}
          onChange={(event) => fileTree.setOrder(event.currentTarget.value as Order)}
          data={[
            { value: "name", label: "Name" },
            { value: "size", label: "Size" },
            { value: "modified", label: "Newest" },
          ]}
        />
        <Tooltip label="New file">
          <ActionIcon variant="subtle" color="gray" aria-label="New file" disabled={!canAct || !folder} onClick={() => folder && onAsk({ what: "file", place: folder })}>
            <IconFilePlus size={16} stroke={1.6} />
          </ActionIcon>
        </Tooltip>
        {isLocal && (
          <Tooltip label="New folder">
            <ActionIcon variant="subtle" color="gray" aria-label="New folder" disabled={!canAct} onClick={() => onAsk({ what: "folder", place: folder })}>
              <IconFolderPlus size={16} stroke={1.6} />
            </ActionIcon>
          </Tooltip>
        )}
      </div>
      <div className={classes.tree}>
        <Tree
          label="Files"
          rows={rows}
          selected={cursor?.id ?? null}
          activeIndex={cursor ? active : -1}
          onSelect={onSelect}
          onEnter={onEnter}
          onOpen={(opened, isOpen) => opened.entry && fileTree.setOpen(opened.entry, isOpen)}
          onRange={fileTree.setRange}
          renderRow={(row) => <Row row={row} />}
        />
      </div>
    </div>
  );
}

function askFor(node: FileNode | undefined, what: "delete" | "move", onAsk: (asked: Asked) => void): void {
  if (node?.entry && node.folder !== TOP) onAsk({ what, place: node.entry.place });
}

function Filter({ folder, ref, onDone }: { folder: Place | null; ref: React.Ref<HTMLInputElement>; onDone: () => void }) {
  const id = folder ? idOf(folder) : null;
  const [typed, setTyped] = useState(() => (id === null ? "" : fileTree.filterOf(id)));
  const askedAt = useRef(-Infinity);
  useEffect(() => {
    if (id === null) return;
    // The first letter asks at once, those that follow it quickly ask together.
    const wait = performance.now() - askedAt.current > TYPING_MS ? 0 : FILTER_MS;
    const timer = setTimeout(() => {
      askedAt.current = performance.now();
      fileTree.setFilter(id, typed);
    }, wait);
    return () => clearTimeout(timer);
  }, [id, typed]);
  const name = folder ? displayName(nameOf(folder)) : "";
  return (
    <TextInput
      ref={ref}
      size="xs"
      className={classes.filter ?? ""}
      aria-label={folder ? `Filter ${name}` : "Filter"}
      placeholder={folder ? `Filter ${name}` : "Filter"}
      disabled={!folder}
      value={typed}
      spellCheck={false}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") setTyped("");
        if (event.key !== "Escape" && event.key !== "Enter" && event.key !== "ArrowDown") return;
        event.preventDefault();
        if (folder) fileTree.enter(folder);
        onDone();
      }}
    />
  );
}

function Row({ row }: { row: TreeRow<FileNode> }) {
  const { entry, note } = row.node;
  if (note !== undefined) return <span className={classes.rowNote}>{note}</span>;
  if (!entry) {
    return (
      <span className={classes.rowBone} data-loading>
        <span className="hf-visually-hidden">Loading</span>
      </span>
    );
  }
  const Icon = entry.type === "file" && IMAGE.test(entry.name) ? IconPhoto : (ICONS[entry.type] ?? IconFile);
  const total = row.isOpen ? fileTree.totalOf(entry.place) : null;
  const filter = row.isOpen ? fileTree.filterOf(idOf(entry.place)) : "";
  return (
    <>
      <Icon size={16} stroke={1.5} aria-hidden />
      <span className={classes.rowName}>
        <Name>{entry.name}</Name>
      </span>
      {entry.note && <span className={classes.rowFact}>{entry.note}</span>}
      {entry.access !== undefined && entry.access !== "allow" && <span className={classes.rowRule}>{entry.access}</span>}
      {filter !== "" && <span className={classes.rowRule}>filtered</span>}
      {total !== null && <span className={classes.rowFact}>{total.toLocaleString("en-US")}</span>}
      {entry.sizeBytes !== undefined && <span className={classes.rowFact}>{formatSize(entry.sizeBytes)}</span>}
    </>
  );
}
