import { Checkbox } from "@mantine/core";
import type { Hunk } from "@/shared/diff/hunks";
import { Counts } from "@/shared/reviews/Counts";
import classes from "./review.module.css";

export interface HunkHeadProps {
  hunk: Hunk;
  count: number;
  isTaken: boolean;
  isSeen: boolean;
  isFixed: boolean;
  onTake: () => void;
  onSeen: () => void;
}

/** The line above a hunk: whether it is part of the approval, which lines it is about, and whether it was looked at. */
export function HunkHead({ hunk, count, isTaken, isSeen, isFixed, onTake, onSeen }: HunkHeadProps) {
  const first = hunk.afterFrom + 1;
  const last = Math.max(first, hunk.afterTo);
  return (
    <div className={classes.hunkHead}>
      {count > 1 && !isFixed ? (
        <Checkbox size="xs" checked={isTaken} onChange={onTake} label={`Hunk ${hunk.index + 1}`} title="x" />
      ) : (
        <span>{count > 1 ? `Hunk ${hunk.index + 1}` : "The change"}</span>
      )}
      <span className={classes.dim}>{first === last ? `line ${first}` : `lines ${first}–${last}`}</span>
      <Counts added={hunk.added} removed={hunk.removed} />
      {!isTaken && <span className={classes.chip}>left out</span>}
      <span className={classes.spring} />
      {!isFixed && (
        <Checkbox size="xs" checked={isSeen} onChange={onSeen} label="Seen" title="Space" labelPosition="left" />
      )}
    </div>
  );
}
