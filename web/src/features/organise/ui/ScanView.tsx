/** A scan under way: how far it is, and Stop. */
import { Button, Progress } from "@mantine/core";
import { useState } from "react";
import { call, type DataOf } from "@/api/client";
import { useCanAct } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Words } from "@/shared/LineText";
import { WholePath } from "@/shared/Place";
import { showFault } from "@/shared/toasts";
import classes from "../organise.module.css";
import { useProgress } from "./progress";

export function ScanProgress({ done, total, message }: { done: number; total: number | null; message: string }) {
  const percent = total ? Math.min(100, (done / total) * 100) : 0;
  return (
    <span className={classes.progress}>
      <Progress value={percent} aria-label="Progress" transitionDuration={0} />
      <span className={classes.progressText} role="status">
        <Words text={message} /> <span className={classes.dim}>{Math.floor(percent)} %</span>
      </span>
    </span>
  );
}

export function ScanView({ scan }: { scan: DataOf<"running_scans">["scans"][number] }) {
  const progress = useProgress(scan.plan_id) ?? { ...scan, total: scan.total ?? null };
  const canAct = useCanAct();
  const [isStopping, setStopping] = useState(false);
  const stop = async () => {
    setStopping(true);
    try {
      await call("stop_plan", { plan_id: scan.plan_id });
    } catch (error) {
      setStopping(false);
      showFault(error, "It was not stopped");
    }
  };
  useKeys("Scan", [{ keys: "s", label: "Stop the scan", run: () => void stop(), isOff: !canAct || isStopping }]);
  return (
    <div className={classes.scan}>
      <h1>
        Scanning <WholePath path={scan.folder} />
      </h1>
      <ScanProgress done={progress.done} total={progress.total} message={progress.message} />
      <p className={classes.dim}>The plan opens here when it is made. Nothing moves before you approve it; you may leave this page meanwhile.</p>
      <Button variant="default" disabled={!canAct || isStopping} title="s" onClick={() => void stop()}>
        {isStopping ? "Stopping…" : "Stop"}
      </Button>
    </div>
  );
}
