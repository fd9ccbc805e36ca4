/** What can be done with a file of a plan, or with all chosen ones. */
import { Menu } from "@mantine/core";
import { IconArrowBackUp, IconFolder, IconFolderPlus, IconHandStop, IconInfoCircle } from "@tabler/icons-react";
import { Name } from "@/shared/Name";
import { Keys } from "@/shared/states";
import { quantity } from "@/shared/times";
import classes from "../organise.module.css";
import type { PlanRow } from "./rows";

const MAX_SHELVES = 8;

export interface MenuAt {
  /** The row that was pointed at, and the rows that an action is about. */
  row: PlanRow;
  rows: readonly PlanRow[];
  x: number;
  y: number;
}

export interface RowMenuProps {
  menu: MenuAt;
  shelves: readonly string[];
  canCorrect: boolean;
  canUndo: boolean;
  onDecide: (rows: readonly PlanRow[], folder: string | null) => void;
  onMoveTo: (rows: readonly PlanRow[]) => void;
  onExplain: (row: PlanRow) => void;
  onUndo: (rows: readonly PlanRow[]) => void;
  onClose: () => void;
}

export function RowMenu(props: RowMenuProps) {
  const { menu, shelves, canCorrect, canUndo, onDecide, onMoveTo, onExplain, onUndo, onClose } = props;
  const { row, rows, x, y } = menu;
  const near = [...new Set([...(row.folder ? [row.folder] : []), ...shelves])].slice(0, MAX_SHELVES);
  const moved = rows.filter((each) => each.status === "DONE");
  return (
    <Menu opened onClose={onClose} position="bottom-end" width={280} withinPortal returnFocus>
      <Menu.Target>
        <button type="button" tabIndex={-1} className={classes.menuAt} style={{ insetInlineStart: x, insetBlockStart: y }} aria-label="Menu of the file" />
      </Menu.Target>
      <Menu.Dropdown>
        {canCorrect && row.status !== "NOT_SCANNED" && (
          <>
            <Menu.Label>{rows.length > 1 ? `Move ${quantity(rows.length, "file")} to` : "Move to"}</Menu.Label>
            {near.map((shelf) => (
              <Menu.Item key={shelf} leftSection={<IconFolder size={16} stroke={1.6} />} onClick={() => onDecide(rows, shelf)}>
                <Name>{shelf}</Name>
              </Menu.Item>
            ))}
            <Menu.Item leftSection={<IconFolderPlus size={16} stroke={1.6} />} rightSection={<Keys>m</Keys>} onClick={() => onMoveTo(rows)}>
              Another or a new folder…
            </Menu.Item>
            <Menu.Item leftSection={<IconHandStop size={16} stroke={1.6} />} rightSection={<Keys>l</Keys>} onClick={() => onDecide(rows, null)}>
              Leave it where it is
            </Menu.Item>
            <Menu.Divider />
          </>
        )}
        {canUndo && moved.length > 0 && (
          <Menu.Item leftSection={<IconArrowBackUp size={16} stroke={1.6} />} onClick={() => onUndo(moved)}>
            {moved.length > 1 ? `Move ${quantity(moved.length, "file")} back` : "Move it back"}
          </Menu.Item>
        )}
        <Menu.Item leftSection={<IconInfoCircle size={16} stroke={1.6} />} rightSection={<Keys>e</Keys>} onClick={() => onExplain(row)}>
          Explain
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
