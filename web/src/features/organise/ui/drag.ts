/** Dragging rows of a plan to a folder. */
import { useState, type DragEvent } from "react";
import type { PlanRow } from "./rows";

const TYPE = "application/x-holdfast-files";
let dragged: readonly PlanRow[] = [];

/** Return what makes an element draggable with some rows. */
export function dragSource(rows: () => readonly PlanRow[]) {
  return {
    draggable: true,
    onDragStart: (event: DragEvent) => {
      dragged = rows();
      event.dataTransfer.setData(TYPE, String(dragged.length));
      event.dataTransfer.effectAllowed = "move";
    },
    onDragEnd: () => {
      dragged = [];
    },
  };
}

/** Return what makes an element take dragged rows, and whether some are over it. */
export function useDrop(onDrop: ((rows: readonly PlanRow[]) => void) | null) {
  const [isOver, setOver] = useState(false);
  const accepts = (event: DragEvent) => onDrop !== null && event.dataTransfer.types.includes(TYPE);
  const target = {
    onDragOver: (event: DragEvent) => {
      if (!accepts(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "move";
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      setOver(false);
      if (!accepts(event)) return;
      event.preventDefault();
      onDrop?.(dragged);
    },
  };
  return { isOver, target };
}
