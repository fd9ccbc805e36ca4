/** How a file or folder came to what it is: its changes or versions, what each did, and the way back to before it. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { call } from "@/api/client";
import type { ListedChange } from "@/api/entries";
import { ApiFault } from "@/api/fault";
import { useCanAct, useEntry } from "@/api/hooks";
import { EffectList } from "@/shared/changes/EffectList";
import { Diff } from "@/shared/diff/Diff";
import { makeModel } from "@/shared/diff/hunks";
import { lineHunks } from "@/shared/diff/line_diff";
import { Name } from "@/shared/Name";
import { splitPath } from "@/shared/names";
import { kindWord, makerOf } from "@/shared/reviews/words";
import { Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { formatSize, quantity } from "@/shared/times";
import { attempt, restoreDeleted, save, type Done } from "../actions";
import classes from "../files.module.css";
import type { Place } from "../rules/place";

export interface HistoryProps {
  place: Place;
  /** The text that is there now, of a stored file. */
  present: { text: string; hash: string } | null;
  onDone: (message: string, done: Done) => void;
  onUndo: (changeId: string) => Promise<void>;
}

export function History(props: HistoryProps) {
  return props.place.kind === "local" ? <LocalHistory {...props} path={props.place.path} /> : <Versions {...props} place={props.place} />;
}

const PAGE = 50;

function LocalHistory({ path, onDone, onUndo }: HistoryProps & { path: string }) {
  const [limit, setLimit] = useState(PAGE);
  const history = useEntry("files", "history_of", { path, limit });
  const [shown, setShown] = useState<string | null>(null);
  const canAct = useCanAct();
  const restore = (change: ListedChange) =>
    attempt("It was not restored", async () => {
      const done = await call("restore_before", { change_id: change.change_id });
      onDone("Restored", { place: { kind: "local", path }, undo: done.restore_id ? { changeId: done.restore_id } : null });
    });
  if (history.isError) return <Fault error={history.error} onRetry={() => void history.refetch()} />;
  if (history.isPending) return <Loading />;
  if (history.data.changes.length === 0) {
    return <Empty title="No change was made here through Holdfast.">Changes of agents and yours are listed here, each with its way back.</Empty>;
  }
  return (
    <>
      <ul className={classes.changes} aria-label="Changes">
        {history.data.changes.map((change) => (
          <li key={change.change_id}>
            <div className={classes.change}>
              <span className={classes.changeWhat}>
                {kindWord(change.kind)}
                {change.destination && (
                  <>
                    {" "}
                    <Name>{splitPath(change.path).name}</Name> → <Name>{splitPath(change.destination).name}</Name>
                  </>
                )}
                {change.status === "UNDONE" && <span className={classes.dim}>, undone</span>}
                {change.status === "FAILED" && <span className={classes.dim}>, not done</span>}
              </span>
              <span className={classes.dim}>
                {makerOf(change)}, <Time at={change.at} />
              </span>
              <span className={classes.buttons}>
                <Button
                  variant="subtle"
                  aria-expanded={shown === change.change_id}
                  onClick={() => setShown(shown === change.change_id ? null : change.change_id)}
                >
                  Diff
                </Button>
                <Button variant="default" disabled={!canAct || !change.undoable || change.status === "UNDONE"} onClick={() => void onUndo(change.change_id)}>
                  Undo
                </Button>
                <Button
                  variant="default"
                  disabled={!canAct || !change.undoable}
                  title="Restore what was here before this change, whatever was changed since"
                  onClick={() => void restore(change)}
                >
                  Restore before
                </Button>
              </span>
            </div>
            {shown === change.change_id && <ChangeDiff id={change.change_id} />}
          </li>
        ))}
      </ul>
      {history.data.has_more && limit < 500 && (
        <Button variant="subtle" onClick={() => setLimit(500)}>
          List more
        </Button>
      )}
    </>
  );
}

function ChangeDiff({ id }: { id: string }) {
  const change = useEntry("changes", "show_change", { change_id: id });
  if (change.isError) return <Fault error={change.error} onRetry={() => void change.refetch()} />;
  if (change.isPending) return <Loading rows={3} />;
  return <EffectList files={change.data.files} label="Files of the change" />;
}

function Versions({ place, present, onDone }: HistoryProps & { place: Place & { kind: "store" } }) {
  const where = { project: place.project, path: place.path };
  const versions = useEntry("store", "file_history", where, { staleTime: 0 });
  const [shown, setShown] = useState<number | null>(null);
  const canAct = useCanAct();
  const restore = (version: number) =>
    attempt("It was not restored", async () => {
      if (present === null) {
        await call("file_restore", { ...where, version });
        onDone("Restored", { place, undo: null });
        return;
      }
      const old = await call("open_stored_file", { ...where, version });
      onDone("Restored", await save(place, old.text, present.hash, present.text));
    });
  if (versions.isError) {
    if (versions.error instanceof ApiFault && versions.error.code === "NOT_FOUND") return <Empty title="Nothing was ever here, or it is no longer kept." />;
    return <Fault error={versions.error} onRetry={() => void versions.refetch()} />;
  }
  if (versions.isPending) return <Loading />;
  const listed = versions.data.versions;
  if (listed.length === 0) return <Empty title="No earlier version.">Each save keeps the one before it, the last twenty of them.</Empty>;
  return (
    <>
      {present === null && (
        <div className={classes.notice}>
          <span>The file was deleted. What it held is kept.</span>
          <Button
            disabled={!canAct}
            onClick={() =>
              void attempt("It was not brought back", async () => {
                await restoreDeleted(place.project, [place.path]);
                onDone("", { place, undo: null });
              })
            }
          >
            Bring it back
          </Button>
        </div>
      )}
      <ul className={classes.changes} aria-label="Versions">
        {listed.map((version) => (
          <li key={version.version}>
            <div className={classes.change}>
              <span className={classes.changeWhat}>
                Version {version.version}, {formatSize(version.size)}
              </span>
              <span className={classes.dim}>
                written <Time at={version.written_at} />
              </span>
              <span className={classes.buttons}>
                <Button
                  variant="subtle"
                  aria-expanded={shown === version.version}
                  onClick={() => setShown(shown === version.version ? null : version.version)}
                >
                  Diff
                </Button>
                <Button variant="default" disabled={!canAct} onClick={() => void restore(version.version)}>
                  Restore
                </Button>
              </span>
            </div>
            {shown === version.version && <VersionDiff place={place} version={version.version} present={present?.text ?? ""} />}
          </li>
        ))}
      </ul>
    </>
  );
}

/** What became of a version since: from it to the present text. */
function VersionDiff({ place, version, present }: { place: Place & { kind: "store" }; version: number; present: string }) {
  const old = useQuery({
    queryKey: ["store", "version", place.project, place.path, version],
    queryFn: ({ signal }) => call("open_stored_file", { project: place.project, path: place.path, version }, signal),
  });
  const scroller = useRef<HTMLDivElement>(null);
  const model = useMemo(() => (old.data ? makeModel(old.data.text, lineHunks(old.data.text, present)) : null), [old.data, present]);
  if (old.isError) return <Fault error={old.error} onRetry={() => void old.refetch()} />;
  if (!model) return <Loading rows={3} />;
  if (model.hunks.length === 0) return <p className={classes.dim}>The file holds just this.</p>;
  return (
    <div ref={scroller} className={classes.versionDiff} tabIndex={0} role="group" aria-label={`Version ${version} and the present text`}>
      <Diff
        model={model}
        view="unified"
        wrap
        label={`From version ${version} to the present text`}
        scroller={scroller}
        renderHead={(hunk) => <span className={classes.dim}>{quantity(hunk.added, "line")} added since, {hunk.removed.toLocaleString("en-US")} removed</span>}
      />
    </div>
  );
}
