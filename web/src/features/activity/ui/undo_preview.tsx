/** What an undo would do to each file; then it is done, one change after another, and says what stayed. */
import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { call, type DataOf } from "@/api/client";
import { asFault } from "@/api/fault";
import { useCanAct, useEntry } from "@/api/hooks";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { kindWord } from "@/shared/reviews/words";
import { Fault, Loading } from "@/shared/states";
import { showToast, showUndo } from "@/shared/toasts";
import { quantity } from "@/shared/times";
import classes from "../activity.module.css";

type Step = DataOf<"preview_undo">["steps"][number];
const MAX_FILES = 50;
const WORDS: Record<string, string> = {
  replace: "gets its earlier text", remove: "is removed", restore: "comes back", move: "moves back", mkdir: "is made again",
  rmdir: "is removed when it is empty", kept: "bytes of another program are kept",
};

interface Outcome {
  undone: string[];
  stayed: { path: string; reason: string }[];
}

/** Undo changes in an order, until `isStopped`; an error of one leaves it and goes on. */
async function undoAll(ids: readonly string[], onProgress: (done: number) => void, isStopped: () => boolean): Promise<Outcome> {
  const outcome: Outcome = { undone: [], stayed: [] };
  for (const [at, id] of ids.entries()) {
    if (isStopped()) break;
    onProgress(at);
    try {
      const done = await call("undo_for_person", { change_id: id });
      if (done.undo_id) outcome.undone.push(done.undo_id);
      outcome.stayed.push(...done.stayed);
    } catch (error) {
      outcome.stayed.push({ path: "", reason: asFault(error).message });
    }
  }
  return outcome;
}

export function UndoPreview({ ids, onClose }: { ids: readonly string[]; onClose: () => void }) {
  const preview = useEntry("changes", "preview_undo", { change_ids: [...ids] }, { staleTime: 0 });
  const client = useQueryClient();
  const canAct = useCanAct();
  const [done, setDone] = useState<number | null>(null);
  const [stayed, setStayed] = useState<Outcome["stayed"]>([]);
  const isStopped = useRef(false);
  const confirm = useRef<HTMLButtonElement>(null);
  const isReady = preview.isSuccess;
  useEffect(() => {
    if (isReady) confirm.current?.focus();
  }, [isReady]);
  const steps = preview.data?.steps ?? [];
  const feasible = steps.filter((step) => step.can_be_done);

  const run = async () => {
    isStopped.current = false;
    const outcome = await undoAll(feasible.map((step) => step.change.change_id), setDone, () => isStopped.current);
    setDone(null);
    setStayed(outcome.stayed);
    const refresh = () => Promise.all(["changes", "files", "reviews"].map((noun) => client.invalidateQueries({ queryKey: [noun] })));
    await refresh();
    const message = `${quantity(outcome.undone.length, "change")} undone${outcome.stayed.length > 0 ? `, ${quantity(outcome.stayed.length, "file")} stayed` : ""}.`;
    if (outcome.undone.length === 0) showToast(message);
    else {
      showUndo(message, "Do again what was undone", async () => {
        const again = await undoAll([...outcome.undone].reverse(), () => undefined, () => false);
        await refresh();
        showToast(`${quantity(again.undone.length, "change")} done again.`);
      });
    }
    if (outcome.stayed.length === 0) onClose();
  };

  return (
    <div className={classes.detail}>
      <div className={classes.detailHead}>
        <h2 className={classes.detailTitle}>What undoing would do</h2>
        <span className={classes.spring} />
        <Button variant="default" disabled={done !== null} onClick={onClose}>
          Back
        </Button>
        {done !== null ? (
          <Button variant="default" onClick={() => (isStopped.current = true)}>
            Stop ({done} of {feasible.length} undone)
          </Button>
        ) : (
          <Button ref={confirm} disabled={!canAct || !isReady || feasible.length === 0} onClick={() => void run()}>
            Undo {quantity(feasible.length, "change")}
          </Button>
        )}
      </div>
      {preview.isError && <Fault error={preview.error} onRetry={() => void preview.refetch()} />}
      {preview.isPending && <Loading rows={5} label="Looking at what undoing would do" />}
      {isReady && feasible.length < steps.length && (
        <p className={classes.hint}>
          {feasible.length === 0 ? "None of it" : `${feasible.length} of ${quantity(steps.length, "change")}`} can be undone now; why the{" "}
          {feasible.length === 0 ? "changes stay" : "others stay"} stands beside them.
        </p>
      )}
      {stayed.length > 0 && (
        <div role="alert">
          <h3 className={classes.sub}>These stayed</h3>
          <ul className={classes.steps}>
            {stayed.map((file, at) => (
              <li key={at} className={classes.step}>
                {file.path && <Name>{file.path}</Name>} <span className={classes.dim}><Words text={file.reason} /></span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <ul className={classes.steps} aria-label="Changes in the order of their undo">
        {steps.map((step) => (
          <StepRow key={step.change.change_id} step={step} />
        ))}
      </ul>
    </div>
  );
}

function StepRow({ step }: { step: Step }) {
  const [only] = step.files.length === 1 ? step.files : [];
  const isOneLine = only !== undefined && only.path === step.change.path;
  return (
    <li className={classes.step} data-stays={!step.can_be_done}>
      <p className={classes.stepHead}>
        <span className={classes.changeKind}>{kindWord(step.change.kind)}</span>
        <Name isPath>{step.change.path}</Name>
        {!step.can_be_done && <span className={classes.stays}>stays: <Words text={step.problem || "it cannot be undone"} /></span>}
        {step.can_be_done && isOneLine && <FileStep file={only} />}
      </p>
      {step.can_be_done && !isOneLine && (
        <ul className={classes.stepFiles}>
          {step.files.slice(0, MAX_FILES).map((file, at) => (
            <li key={at}>
              <Name>{file.path}</Name> <FileStep file={file} />
            </li>
          ))}
          {step.files.length > MAX_FILES && <li className={classes.dim}>and {step.files.length - MAX_FILES} more</li>}
        </ul>
      )}
    </li>
  );
}

/** Say what the undo does to one file. */
function FileStep({ file }: { file: Step["files"][number] }) {
  return (
    <>
      <span className={classes.dim}>{WORDS[file.step] ?? file.step}</span>
      {file.destination && (
        <>
          {" → "}
          <Name>{file.destination}</Name>
        </>
      )}
      {file.problem && <span className={classes.stays}> stays: <Words text={file.problem} /></span>}
    </>
  );
}
