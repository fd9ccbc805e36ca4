/** Sending decisions: what follows one is the same from every page. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { call, type ArgumentsOf, type DataOf } from "@/api/client";
import { offerNotifications } from "../notify";

/** Return a function that sends one decision; it throws ApiFault. */
export function useDecide(): (decision: ArgumentsOf<"decide_review">) => Promise<DataOf<"decide_review">> {
  const client = useQueryClient();
  return useCallback(
    async (decision) => {
      try {
        const decided = await call("decide_review", decision);
        offerNotifications();
        return decided;
      } finally {
        void client.invalidateQueries({ queryKey: ["reviews"] });
      }
    },
    [client],
  );
}
