/** What a reader of a plan should know first: the folder changed since, a newer plan exists, a correction changed more. */
import { Button } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useEntry } from "@/api/hooks";
import { Name } from "@/shared/Name";
import { Fault } from "@/shared/states";
import { quantity } from "@/shared/times";
import classes from "../organise.module.css";
import { others, type ChangedMove } from "../rules/staging";
import type { CorrectionReport } from "./corrections";
import type { PlanHead } from "./rows";

const MAX_SHOWN = 200;

export interface BannersProps {
  head: PlanHead;
  isBusy: boolean;
  report: CorrectionReport | null;
  onForget: () => void;
}

export function Banners({ head, isBusy, report, onForget }: BannersProps) {
  return (
    <>
      {(head.status === "CREATED" || head.status === "APPROVED") && !isBusy && <Staleness planId={head.plan_id} />}
      {head.remark && <p className={classes.banner}>{head.remark}</p>}
      {report && head.status === "CREATED" && <Corrected report={report} onForget={onForget} />}
    </>
  );
}

/** Say which files are not what they were when the plan was made, before somebody approves it. */
function Staleness({ planId }: { planId: string }) {
  const fresh = useEntry("plans", "plan_freshness", { plan_id: planId }, { refetchOnWindowFocus: true, staleTime: 5000 });
  if (fresh.isError) return <Fault error={fresh.error} onRetry={() => void fresh.refetch()} />;
  if (!fresh.data) return null;
  const { missing, changed, examples, newer_plan: newer } = fresh.data;
  if (missing + changed === 0 && !newer) return null;
  const parts = [missing > 0 ? `${quantity(missing, "file")} ${missing === 1 ? "is" : "are"} gone` : "", changed > 0 ? `${quantity(changed, "file")} ${changed === 1 ? "was" : "were"} changed` : ""];
  return (
    <div className={classes.banner} role="status" data-warn>
      {missing + changed > 0 && (
        <p>
          The folder changed since the scan: {parts.filter(Boolean).join(", ")} (
          {examples.slice(0, 3).map((path, at) => (
            <span key={path}>
              {at > 0 && ", "}
              <Name>{path}</Name>
            </span>
          ))}
          {missing + changed > 3 && ", …"}). {missing + changed === 1 ? "It" : "They"} would stay. A new scan takes it into account.
        </p>
      )}
      {newer && (
        <p>
          There is <Link href={`/organise/${newer}`}>a newer plan</Link> for this folder.
        </p>
      )}
    </div>
  );
}

/** Say what a correction changed besides the files that were decided on: from where to where. */
function Corrected({ report, onForget }: { report: CorrectionReport; onForget: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const more = others(report.changed, report.decided);
  const moreCount = Math.max(more.length, report.changedCount - (report.changed.length - more.length));
  return (
    <div className={classes.banner} role="status">
      <p>
        {quantity(report.decided.size, "file")} corrected.{" "}
        {moreCount === 0 ? "No other file changes its place." : `${quantity(moreCount, "other file")} ${moreCount === 1 ? "changes its place" : "change their places"}.`}
      </p>
      {moreCount > 0 && (
        <Button variant="default" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide them" : "Show them"}
        </Button>
      )}
      <Button variant="subtle" color="gray" onClick={onForget}>
        Dismiss
      </Button>
      {isOpen && (
        <ul className={classes.changedList} tabIndex={0} aria-label="Files that change their places">
          {more.slice(0, MAX_SHOWN).map((move) => (
            <ChangedLine key={move.path} move={move} />
          ))}
          {moreCount > MAX_SHOWN && <li className={classes.dim}>and {(moreCount - MAX_SHOWN).toLocaleString("en-US")} more</li>}
        </ul>
      )}
    </div>
  );
}

function ChangedLine({ move }: { move: ChangedMove }) {
  const place = (path: string | null | undefined) => (path ? <Name>{path.slice(0, Math.max(0, path.lastIndexOf("/")))}</Name> : "stays");
  return (
    <li>
      <Name>{move.path}</Name>: {place(move.before)} → {place(move.to)}
    </li>
  );
}
