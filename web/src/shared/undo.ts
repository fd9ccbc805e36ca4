/** Undoing a change from a page: the same entry for every toast and button. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { call } from "@/api/client";
import { forgetUndo, showFault, showToast } from "./toasts";

/** Return a function that undoes a change and says what became of it. */
export function useUndo(): (changeId: string) => Promise<void> {
  const client = useQueryClient();
  return useCallback(
    async (changeId: string) => {
      try {
        const done = await call("undo_for_person", { change_id: changeId });
        const stayed = done.stayed.length;
        forgetUndo(changeId);
        showToast(stayed === 0 ? "Undone. Activity offers to undo the undo." : `Undone; ${stayed} stayed: ${done.stayed[0]?.reason ?? ""}`);
      } catch (error) {
        showFault(error, "It was not undone");
      }
      await Promise.all(["changes", "files", "reviews"].map((noun) => client.invalidateQueries({ queryKey: [noun] })));
    },
    [client],
  );
}
