/** What the server says while it works on a plan. */
import { useState } from "react";
import { useServerEvent } from "@/api/hooks";

export interface PlanProgress {
  phase: string;
  done: number;
  total: number | null;
  message: string;
}

/** Return how far a scan, an execution or an undo has come; null while nothing was heard or when it ended. */
export function useProgress(planId: string): PlanProgress | null {
  const [progress, setProgress] = useState<PlanProgress | null>(null);
  useServerEvent(({ name, data }) => {
    if (name === "plan.progress" && data["plan_id"] === planId) {
      setProgress({
        phase: String(data["phase"]),
        done: Number(data["done"] ?? 0),
        total: typeof data["total"] === "number" ? data["total"] : null,
        message: typeof data["message"] === "string" ? data["message"] : "",
      });
    }
    // Work begins and ends with such an event; what is stopped stays RUNNING.
    if (name === "plan.changed" && data["id"] === planId) setProgress(null);
    if (name === "resync" || name === "hello") setProgress(null);
  });
  return progress;
}
