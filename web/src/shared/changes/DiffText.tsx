/** A unified diff as lines with their numbers; long ones are painted in pieces, and nothing is hidden behind a button. */
import { useMemo } from "react";
import { LineText } from "@/shared/LineText";
import classes from "./changes.module.css";
import { parseUnified, type UnifiedLine } from "./unified";

const PIECE = 200;
const LINE_PX = 20;
const SIGNS = { added: "+", removed: "−", same: " ", hunk: "", note: "" } as const;

export function DiffText({ diff, label }: { diff: string; label: string }) {
  const pieces = useMemo(() => {
    const { lines } = parseUnified(diff);
    return Array.from({ length: Math.ceil(lines.length / PIECE) }, (_, at) => lines.slice(at * PIECE, (at + 1) * PIECE));
  }, [diff]);
  return (
    <div className={classes.diff} role="group" aria-label={label} tabIndex={0}>
      {pieces.map((lines, at) => (
        <div key={at} className={classes.piece} style={{ containIntrinsicSize: `auto ${lines.length * LINE_PX}px` }}>
          {lines.map((line, index) => (
            <DiffLine key={index} line={line} />
          ))}
        </div>
      ))}
    </div>
  );
}

function DiffLine({ line }: { line: UnifiedLine }) {
  return (
    <div className={classes.line} data-kind={line.kind}>
      <span className={classes.number} aria-hidden>
        {line.before ?? ""}
      </span>
      <span className={classes.number} aria-hidden>
        {line.after ?? ""}
      </span>
      <span className={classes.sign}>{SIGNS[line.kind]}</span>
      <span className={classes.code}>
        <LineText text={line.text} />
      </span>
    </div>
  );
}
