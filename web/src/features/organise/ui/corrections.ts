/** Corrections of a plan: staged for a moment, sent together, and answered with what else they changed. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { call, type DataOf } from "@/api/client";
import { showFault } from "@/shared/toasts";
import { NOTHING_STAGED, stage, type Decisions, type Staging } from "../rules/staging";

const WAIT_MS = 800;

export interface CorrectionReport {
  decided: Decisions;
  changed: DataOf<"correct_plan">["changed"];
  changedCount: number;
}

export interface Corrections {
  staging: Staging;
  isPending: boolean;
  isSending: boolean;
  report: CorrectionReport | null;
  forget: () => void;
  decide: (addresses: readonly string[], folder: string | null) => void;
}

function send(planId: string, decisions: Decisions): Promise<DataOf<"correct_plan">> {
  const changes = [...decisions].map(([path, folder]) => (folder === null ? { path } : { path, folder }));
  return call("correct_plan", { plan_id: planId, changes });
}

/** Stage decisions on files of a plan; 800 ms after the last one, and when the page is left, they are sent. */
export function useCorrections(planId: string): Corrections {
  const [staging, step] = useReducer(stage, NOTHING_STAGED);
  const [report, setReport] = useState<CorrectionReport | null>(null);
  const client = useQueryClient();
  const newest = useRef(staging);
  useEffect(() => {
    newest.current = staging;
  });
  useEffect(
    () => () => {
      const { staged } = newest.current;
      if (staged.size > 0) send(planId, staged).catch((error: unknown) => showFault(error, "It was not corrected"));
    },
    [planId],
  );
  useEffect(() => {
    if (staging.staged.size === 0 || staging.sent) return;
    const timer = setTimeout(() => step({ type: "send" }), WAIT_MS);
    return () => clearTimeout(timer);
  }, [staging]);
  const { sent } = staging;
  useEffect(() => {
    if (!sent) return;
    void (async () => {
      try {
        const answer = await send(planId, sent);
        setReport({ decided: sent, changed: answer.changed, changedCount: answer.changed_count });
      } catch (error) {
        showFault(error, "It was not corrected");
      }
      await client.invalidateQueries({ queryKey: ["plans"] });
      step({ type: "end" });
    })();
  }, [planId, sent, client]);
  const decide = useCallback((addresses: readonly string[], folder: string | null) => {
    if (addresses.length > 0) step({ type: "stage", addresses, folder });
  }, []);
  const forget = useCallback(() => setReport(null), []);
  return { staging, isPending: staging.staged.size > 0 || sent !== null, isSending: sent !== null, report, forget, decide };
}
