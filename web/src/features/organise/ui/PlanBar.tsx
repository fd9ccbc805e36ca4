/** The bar at the bottom of a plan: what comes next, how far it is, and what became of it. */
import { Button, Menu, Progress } from "@mantine/core";
import { IconDots } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { call } from "@/api/client";
import { useKeys } from "@/shared/keys";
import { Words } from "@/shared/LineText";
import { shortId } from "@/shared/reviews/words";
import { showFault, showToast } from "@/shared/toasts";
import { quantity } from "@/shared/times";
import classes from "../organise.module.css";
import { outcome, promise } from "../rules/words";
import type { PlanProgress } from "./progress";
import type { PlanHead, PlanRow } from "./rows";
import type { PlanWork } from "./work";

export interface PlanBarProps {
  head: PlanHead;
  work: PlanWork;
  progress: PlanProgress | null;
  isBusy: boolean;
  /** Whether the server works on it, so that there is something to stop; before that, stopping would close the plan. */
  canStop: boolean;
  canAct: boolean;
  /** Why nothing can be approved at the moment. */
  problem: string | null;
  chosen: readonly PlanRow[];
  onUndo: (rows: readonly PlanRow[]) => void;
  onShowStayed: () => void;
}

export function PlanBar(props: PlanBarProps) {
  const { head, work, progress, isBusy, canStop, canAct, problem, chosen, onUndo, onShowStayed } = props;
  const { status, totals } = head;
  const main = useRef<HTMLButtonElement>(null);
  const [, navigate] = useLocation();
  const moves = totals["moves"] ?? 0;
  const left = totals["PENDING"] ?? 0;
  const done = totals["DONE"] ?? 0;
  const stayed = (totals["SKIPPED"] ?? 0) + (totals["ERROR"] ?? 0);
  const isOff = !canAct || isBusy || work.doing !== null;
  const waits = status === "CREATED" && moves > 0;
  useKeys("Plan", [
    { keys: "a", label: "Approve and carry out (asks for Enter)", run: () => main.current?.focus(), isOff: isOff || !waits || problem !== null },
    { keys: "s", label: "Stop", run: () => void work.stop(), isOff: !canAct || !canStop },
  ]);
  const wasBusy = useRef(isBusy);
  useEffect(() => {
    // Whoever started it by a key finds the next step under the focus.
    if (wasBusy.current !== isBusy && document.activeElement === document.body) main.current?.focus();
    wasBusy.current = isBusy;
  });
  const again = async () => {
    try {
      const scan = await call("start_scan", { directory: head.folder, include_subfolders: head.include_subfolders });
      navigate(`/organise/${scan.plan_id}`);
    } catch (error) {
      showFault(error, "It was not scanned");
    }
  };
  if (isBusy) {
    const isUndo = progress?.phase === "undo" || work.doing === "undo";
    const percent = progress?.total ? Math.min(100, (progress.done / progress.total) * 100) : 0;
    return (
      <footer className={classes.planBar}>
        <span className={classes.barProgress}>
          <span role="status">
            {isUndo ? "Moving back" : "Moving"} {progress ? <Words text={progress.message} /> : "…"}
          </span>
          <Progress value={percent} aria-label="Progress" transitionDuration={0} />
        </span>
        <Button ref={main} size="sm" variant="default" disabled={!canAct || !canStop || work.isStopping} title="s" onClick={() => void work.stop()}>
          {work.isStopping ? "Stopping…" : "Stop"}
        </Button>
        <span className={classes.barHint}>{work.doing ? "Every file is whole all the time. Closing this tab stops it; it can be gone on with." : "You may leave this page meanwhile."}</span>
      </footer>
    );
  }
  const canUndo = done > 0;
  const isOpen = status === "CREATED" || status === "APPROVED";
  const canGoOn = (status === "RUNNING" || status === "FAILED" || status === "APPROVED") && moves > 0;
  const movedChosen = chosen.filter((row) => row.status === "DONE");
  return (
    <footer className={classes.planBar}>
      {waits && (
        <Button ref={main} size="sm" disabled={isOff || problem !== null} title="a, then Enter" onClick={() => void work.approveAndExecute(head.plan_hash)}>
          Approve and carry out {quantity(moves, "move")}
        </Button>
      )}
      {canGoOn && (
        <Button ref={main} size="sm" disabled={isOff} onClick={() => void work.execute()}>
          {status === "APPROVED" ? `Carry out ${quantity(moves, "move")}` : status === "RUNNING" ? `Go on with ${quantity(left, "move")}` : "Try the others again"}
        </Button>
      )}
      {canUndo && movedChosen.length > 0 && (
        <Button size="sm" variant="default" disabled={isOff} onClick={() => onUndo(movedChosen)}>
          Undo {movedChosen.length.toLocaleString("en-US")} chosen
        </Button>
      )}
      {canUndo && (
        <Button ref={canGoOn ? null : main} size="sm" variant="default" disabled={isOff} onClick={() => void work.undo()}>
          Undo all {done.toLocaleString("en-US")}
        </Button>
      )}
      {!isOpen && (
        <Button size="sm" variant="default" disabled={isOff} onClick={() => void again()}>
          Scan again
        </Button>
      )}
      <span className={classes.barText} role="status">
        <BarText head={head} problem={problem} stayed={stayed} onShowStayed={onShowStayed} />
      </span>
      <Menu position="top-end" width={300}>
        <Menu.Target>
          <Button size="sm" variant="subtle" color="gray" aria-label="More about this plan">
            <IconDots size={16} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {waits && (
            <Menu.Item disabled={isOff || problem !== null} onClick={() => void work.approve(head.plan_hash)}>
              Approve only; an agent carries it out
            </Menu.Item>
          )}
          {isOpen && (
            <Menu.Item disabled={isOff} onClick={() => void work.close()}>
              Close the plan; nothing moves
            </Menu.Item>
          )}
          {isOpen && (
            <Menu.Item disabled={isOff} onClick={() => void again()}>
              Scan again
            </Menu.Item>
          )}
          <Menu.Item onClick={() => void copy(`holdfast organise show ${shortId(head.plan_id)} --all`)}>Copy the command that shows it</Menu.Item>
          {canUndo && <Menu.Item onClick={() => void copy(`holdfast organise undo ${shortId(head.plan_id)}`)}>Copy the command that undoes it</Menu.Item>}
        </Menu.Dropdown>
      </Menu>
    </footer>
  );
}

async function copy(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
  showToast(`Copied: ${text}`);
}

function BarText({ head, problem, stayed, onShowStayed }: { head: PlanHead; problem: string | null; stayed: number; onShowStayed: () => void }) {
  const { status, totals, counts } = head;
  const moves = totals["moves"] ?? 0;
  if (status === "CREATED" || status === "APPROVED") {
    if (problem) return problem;
    if (moves === 0) return "There is nothing to move.";
    const looks = counts["uncertain"] ?? 0;
    const fresh = head.folders.filter((folder) => folder.is_new).length;
    return (
      <>
        {promise(moves, head.folders_total, fresh)} {looks > 0 && `${quantity(looks, "file")} ${looks === 1 ? "needs" : "need"} a look and ${looks === 1 ? "stays" : "stay"}.`}
      </>
    );
  }
  if (status === "CANCELLED") return "It was closed; nothing has moved.";
  return (
    <>
      {status === "RUNNING" && "Interrupted: "}
      {outcome(totals)}
      {stayed > 0 && (
        <>
          {": "}
          <button type="button" className={classes.link} onClick={onShowStayed}>
            why
          </button>
        </>
      )}
      .
    </>
  );
}
