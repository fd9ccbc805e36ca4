/** Where a decided review stands, and what can still be done: write it for an agent that left, withdraw it, undo it. */
import { Button } from "@mantine/core";
import { IconCheck, IconClock } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "@/api/client";
import type { ShownReview } from "@/api/entries";
import { useCanAct, useEntry } from "@/api/hooks";
import { showFault } from "@/shared/toasts";
import { useUndo } from "@/shared/undo";
import classes from "./review.module.css";

export function Standing({ review, appliedAs }: { review: ShownReview; appliedAs: string | null }) {
  const client = useQueryClient();
  const canAct = useCanAct();
  const undo = useUndo();
  const [isBusy, setBusy] = useState(false);
  const recent = useEntry("changes", "all_changes", { limit: 50 }, { enabled: appliedAs !== null });
  const isUndone = recent.data?.changes.find((change) => change.change_id === appliedAs)?.status === "UNDONE";
  const act = async (work: () => Promise<unknown>, doing: string) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      showFault(error, doing);
    } finally {
      setBusy(false);
      void client.invalidateQueries({ queryKey: ["reviews"] });
    }
  };
  if (appliedAs !== null) {
    const isEdit = review.kind === "edit";
    return (
      <div className={classes.bar}>
        <span className={classes.standing} role="status">
          <IconCheck size={18} stroke={1.8} aria-hidden /> {isUndone ? "Undone." : isEdit ? "Written." : "Done."}
        </span>
        <Button
          size="sm"
          variant="default"
          disabled={!canAct || isBusy || isUndone}
          onClick={() => {
            setBusy(true);
            void undo(appliedAs).finally(() => setBusy(false));
          }}
        >
          Undo
        </Button>
      </div>
    );
  }
  if (review.user_action !== "APPROVE") {
    return (
      <div className={classes.bar}>
        <span className={classes.standing} role="status">
          This review is closed: nothing was written.
        </span>
      </div>
    );
  }
  const { review_id, shown_hash } = review;
  return (
    <div className={classes.bar}>
      <span className={classes.standing} role="status">
        <IconClock size={18} stroke={1.6} aria-hidden /> Approved. The agent writes it.
      </span>
      <Button
        size="sm"
        variant="default"
        disabled={!canAct || isBusy}
        title="For an agent that left"
        onClick={() => void act(() => call("apply_review", { review_id, shown_hash }), "It was not written")}
      >
        Write it now
      </Button>
      <Button
        size="sm"
        variant="default"
        disabled={!canAct || isBusy}
        title="Close it: nothing can come of it any more"
        onClick={() => void act(() => call("withdraw_review", { review_id, channel: "console" }), "It was not withdrawn")}
      >
        Withdraw
      </Button>
    </div>
  );
}
