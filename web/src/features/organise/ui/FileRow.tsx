/** The rows of a plan: a folder with its counts, share and confidence, and a file with where it goes and why. */
import { ActionIcon, Checkbox } from "@mantine/core";
import { IconDots } from "@tabler/icons-react";
import { memo, type MouseEvent } from "react";
import { LineText } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { displayName } from "@/shared/names";
import { quantity } from "@/shared/times";
import classes from "../organise.module.css";
import type { FolderNode } from "../rules/tree";
import { dragSource, useDrop } from "./drag";
import type { PlanRow } from "./rows";

/** Show a confidence as a figure and a bar. */
export function Confidence({ value }: { value: number | null | undefined }) {
  if (value === null || value === undefined) return <span className={classes.confidence} />;
  const percent = Math.round(value * 100);
  return (
    <span className={classes.confidence} data-low={value < 0.8}>
      <span className={classes.percent}>{percent} %</span>
      <span className={classes.bar} aria-hidden>
        <span style={{ width: `${percent}%` }} />
      </span>
    </span>
  );
}

export interface FolderRowProps {
  node: FolderNode;
  moves: number;
  isBusy: boolean;
  isTarget: boolean;
  onDrop: ((rows: readonly PlanRow[]) => void) | null;
}

export const FolderRow = memo(function FolderRow({ node, moves, isBusy, isTarget, onDrop }: FolderRowProps) {
  const { isOver, target } = useDrop(onDrop);
  const share = moves > 0 ? Math.round((node.files / moves) * 100) : 0;
  return (
    <span className={classes.folderRow} data-over={isOver} {...target}>
      <span className={classes.folderName}>
        <Name>{node.name}</Name>/{node.isNew && <span className={classes.new}>new</span>}
      </span>
      <span className={classes.files}>{isBusy && isTarget ? `${node.done.toLocaleString("en-US")} of ${quantity(node.files, "file")}` : quantity(node.files, "file")}</span>
      {isTarget && <span className={classes.share}>{share < 1 ? "< 1" : share} %</span>}
      {isTarget && isBusy && (
        <span className={classes.confidence}>
          <span className={classes.bar} aria-hidden>
            <span style={{ width: `${node.files ? (node.done / node.files) * 100 : 0}%` }} />
          </span>
        </span>
      )}
      {isTarget && !isBusy && <Confidence value={node.confidence} />}
    </span>
  );
});

const STATES: Readonly<Record<string, string>> = {
  DONE: "moved", SKIPPED: "stayed", ERROR: "stayed", UNDONE: "came back", LEFT_ALONE: "left alone", NOT_SCANNED: "skipped", UNCERTAIN: "stays",
};

export interface FileRowProps {
  row: PlanRow | undefined;
  showsPath: boolean;
  showsTarget: boolean;
  /** What the reader decided and the server has not confirmed yet. */
  decision: string | null | undefined;
  isMarked: boolean;
  isChosen: boolean;
  canChoose: boolean;
  canDrag: boolean;
  rowsToDrag: (row: PlanRow) => readonly PlanRow[];
  onToggle: (row: PlanRow, isRange: boolean) => void;
  onMenu: (row: PlanRow, x: number, y: number) => void;
}

export const FileRow = memo(function FileRow(props: FileRowProps) {
  const { row, showsPath, showsTarget, decision, isMarked, isChosen, canChoose, canDrag, rowsToDrag, onToggle, onMenu } = props;
  if (!row) return <span className={classes.pendingRow} aria-label="Loading" />;
  const isPending = decision !== undefined;
  const target = isPending ? decision : row.folder;
  const state = row.status === "PENDING" ? "" : (STATES[row.status] ?? row.status.toLowerCase());
  const openMenu = (event: MouseEvent) => {
    event.preventDefault();
    const box = event.currentTarget.getBoundingClientRect();
    const isClick = event.type === "click";
    onMenu(row, isClick ? box.right : event.clientX, isClick ? box.bottom : event.clientY);
  };
  return (
    <span
      className={classes.fileRow}
      data-pending={isPending}
      data-marked={isMarked}
      onContextMenu={openMenu}
      {...(canDrag ? dragSource(() => rowsToDrag(row)) : {})}
    >
      {canChoose && (
        <Checkbox
          size="xs"
          tabIndex={-1}
          className={classes.check ?? ""}
          checked={isChosen}
          aria-label={`Choose ${displayName(row.name)}`}
          onClick={(event) => {
            event.stopPropagation();
            onToggle(row, event.shiftKey);
          }}
          onChange={() => undefined}
        />
      )}
      <span className={classes.fileName}>
        <Name isPath={showsPath}>{showsPath ? row.path : row.name}</Name>
      </span>
      {(showsTarget || isPending) && (
        <span className={classes.fileTarget}>
          {target ? (
            <>
              {row.status === "UNCERTAIN" && !isPending ? "perhaps " : "→ "}
              <Name>{target}</Name>
            </>
          ) : isPending ? (
            "stays where it is"
          ) : null}
        </span>
      )}
      {isMarked && <span className={classes.mark}>changed</span>}
      {row.was_corrected && !isMarked && <span className={classes.mark}>your decision</span>}
      <span className={classes.reason} title={displayName(row.error ?? row.reason)}>
        {state && <span className={classes.state} data-bad={row.error !== undefined}>{state}</span>}
        <LineText text={row.error ?? row.reason} />
      </span>
      <Confidence value={isPending ? null : row.confidence} />
      <ActionIcon
        variant="subtle"
        color="gray"
        size="sm"
        tabIndex={-1}
        className={classes.dots ?? ""}
        aria-label={`What to do with ${displayName(row.name)}`}
        onClick={(event) => {
          event.stopPropagation();
          openMenu(event);
        }}
      >
        <IconDots size={16} />
      </ActionIcon>
    </span>
  );
});
