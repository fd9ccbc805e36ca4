/** What a person has done with a plan: approve, carry out, stop, go on, undo, close. One thing at a time. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/client";
import { asFault } from "@/api/fault";
import { forgetUndo, showFault, showToast, showUndo } from "@/shared/toasts";
import { quantity } from "@/shared/times";
import { outcome } from "../rules/words";
import type { PlanHead } from "./rows";

export interface PlanWork {
  /** What this page waits for. */
  doing: "approve" | "execute" | "undo" | "close" | null;
  isStopping: boolean;
  approve: (hash: string) => Promise<boolean>;
  approveAndExecute: (hash: string) => Promise<void>;
  execute: () => Promise<void>;
  undo: (itemIds?: readonly number[]) => Promise<void>;
  stop: () => Promise<void>;
  close: () => Promise<void>;
}

export function usePlanWork(head: PlanHead): PlanWork {
  const planId = head.plan_id;
  const client = useQueryClient();
  const [doing, setDoing] = useState<PlanWork["doing"]>(null);
  const [isStopping, setStopping] = useState(false);

  const during = async (what: Exclude<PlanWork["doing"], null>, problem: string, run: () => Promise<void>): Promise<boolean> => {
    setDoing(what);
    let isDone = false;
    try {
      await run();
      isDone = true;
    } catch (error) {
      // A stop ends the call that it stops; the page shows how far it came.
      if (asFault(error).code !== "CANCELLED") showFault(error, problem);
    }
    await Promise.all(["plans", "changes", "files"].map((noun) => client.invalidateQueries({ queryKey: [noun] })));
    setDoing(null);
    setStopping(false);
    return isDone;
  };
  const approve = (hash: string) =>
    during("approve", "It was not approved", async () => {
      await call("approve_plan", { plan_id: planId, plan_hash: hash });
    });
  const undo = async (itemIds?: readonly number[]) => {
    await during("undo", "It was not undone", async () => {
      const done = await call("undo_plan_items", { plan_id: planId, ...(itemIds ? { item_ids: [...itemIds] } : {}) });
      if (!itemIds) forgetUndo(planId);
      const why = done.problems?.[0]?.why;
      showToast(done.stayed ? `${quantity(done.came_back ?? 0, "file")} came back, ${done.stayed} stayed: ${why ?? ""}` : `${quantity(done.came_back ?? 0, "file")} came back.`);
    });
  };
  const execute = async () => {
    await during("execute", "It was not carried out", async () => {
      const done = await call("execute_plan_for_person", { plan_id: planId });
      if (done.totals["DONE"]) showUndo(`${outcome(done.totals)}.`, "Move every file of the plan back", () => undo(), planId);
      else showToast(`${outcome(done.totals)}.`);
    });
  };
  return {
    doing,
    isStopping,
    approve,
    execute,
    undo,
    approveAndExecute: async (hash) => {
      if (await approve(hash)) await execute();
    },
    stop: async () => {
      setStopping(true);
      try {
        await call("stop_plan", { plan_id: planId });
      } catch (error) {
        setStopping(false);
        showFault(error, "It was not stopped");
      }
    },
    close: async () => {
      await during("close", "It was not closed", async () => {
        await call("stop_plan", { plan_id: planId });
        showToast("Closed. Nothing has moved.");
      });
    },
  };
}
