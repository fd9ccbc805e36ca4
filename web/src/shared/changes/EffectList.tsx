/** What became of each file: its name, its lines, and its diff. */
import { useMemo, useState } from "react";
import { Name } from "@/shared/Name";
import { displayName, splitPath } from "@/shared/names";
import { Place } from "../Place";
import { Counts } from "@/shared/reviews/Counts";
import { formatSize } from "@/shared/times";
import classes from "./changes.module.css";
import { DiffText } from "./DiffText";
import { parseUnified } from "./unified";

/** One file of `show_change` or `net_changes`. */
export interface FileEffect {
  effect: string;
  type: string;
  path: string;
  former_path?: string;
  before_bytes?: number;
  after_bytes?: number;
  diff: string;
  note: string;
}

const OPEN_AT_ONCE = 12;
const MANY = 100;

export function EffectList({ files, label }: { files: readonly FileEffect[]; label: string }) {
  const [shown, setShown] = useState(MANY);
  return (
    <ul className={classes.effects} aria-label={label}>
      {files.slice(0, shown).map((file) => (
        <li key={`${file.former_path ?? ""}>${file.path}`}>
          <Effect file={file} isOpenAtFirst={files.length <= OPEN_AT_ONCE} />
        </li>
      ))}
      {files.length > shown && (
        <li>
          <button type="button" className={classes.more} onClick={() => setShown(shown + 10 * MANY)}>
            {shown.toLocaleString("en-US")} of {files.length.toLocaleString("en-US")} files are listed: list more
          </button>
        </li>
      )}
    </ul>
  );
}

function Effect({ file, isOpenAtFirst }: { file: FileEffect; isOpenAtFirst: boolean }) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const counts = useMemo(() => parseUnified(file.diff), [file.diff]);
  const { folder, name } = splitPath(file.path);
  const head = (
    <>
      <span className={classes.effectWord}>{file.effect}</span>
      <span className={classes.effectName}>
        {file.former_path && (
          <>
            <Name>{splitPath(file.former_path).name === name ? file.former_path : splitPath(file.former_path).name}</Name>
            {" → "}
          </>
        )}
        <Name>{name}</Name>
      </span>
      <span className={classes.effectFolder}>
        <Place folder={folder} />
      </span>
      <span className={classes.effectFacts}>
        {file.diff !== "" ? <Counts added={counts.added} removed={counts.removed} /> : sizes(file)}
      </span>
    </>
  );
  return (
    <div className={classes.effect}>
      {file.diff === "" ? (
        <div className={classes.effectHead}>{head}</div>
      ) : (
        <button type="button" className={classes.effectHead} data-open={isOpen} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {head}
        </button>
      )}
      {file.note !== "" && <p className={classes.note}>{file.note}</p>}
      {isOpen && file.diff !== "" && <DiffText diff={file.diff} label={`Diff of ${displayName(name)}`} />}
    </div>
  );
}

function sizes(file: FileEffect): string {
  const { before_bytes: before, after_bytes: after } = file;
  if (before !== undefined && after !== undefined && before !== after) return `${formatSize(before)} → ${formatSize(after)}`;
  const bytes = after ?? before;
  return bytes === undefined || file.type === "directory" ? "" : formatSize(bytes);
}
