/** The folders that files can be dropped on, beside the list. */
import { Name } from "@/shared/Name";
import { VirtualList } from "@/shared/VirtualList";
import classes from "../organise.module.css";
import { useDrop } from "./drag";
import type { PlanHead, PlanRow } from "./rows";

const ROW_PX = 32;

export interface ShelvesProps {
  head: PlanHead;
  onDecide: (rows: readonly PlanRow[], folder: string | null) => void;
  onMoveTo: (rows: readonly PlanRow[]) => void;
}

export function Shelves({ head, onDecide, onMoveTo }: ShelvesProps) {
  const counts = new Map(head.folders.map((folder) => [folder.folder, folder.files]));
  const names = [...new Set([...head.folders.map((folder) => folder.folder), ...head.shelves])];
  return (
    <aside className={classes.shelves} aria-label="Drop files on a folder">
      <h2>Drop files here</h2>
      <Shelf name="Leave it where it is" onDrop={(rows) => onDecide(rows, null)} />
      <Shelf name="A new folder…" onDrop={onMoveTo} />
      <div className={classes.shelfList}>
        <VirtualList
          count={names.length}
          rowHeight={ROW_PX}
          label="Folders to drop on"
          keyOf={(at) => names[at] ?? String(at)}
          renderRow={(at) => {
            const folder = names[at] ?? "";
            return <Shelf folder={folder} count={counts.get(folder)} onDrop={(rows) => onDecide(rows, folder)} />;
          }}
        />
      </div>
    </aside>
  );
}

function Shelf(props: { name?: string; folder?: string; count?: number | undefined; onDrop: (rows: readonly PlanRow[]) => void }) {
  const { name, folder, count, onDrop } = props;
  const { isOver, target } = useDrop(onDrop);
  return (
    <div className={classes.shelf} data-over={isOver} data-shelf={folder ?? name} {...target}>
      <span className={classes.shelfName}>{folder === undefined ? name : <Name>{folder}</Name>}</span>
      {count !== undefined && <span className={classes.dim}>{count.toLocaleString("en-US")}</span>}
    </div>
  );
}
