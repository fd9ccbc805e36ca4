/** The browsers that are signed in, and the way to end each. */
import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { getJson, request } from "@/api/client";
import { useConnection } from "@/api/hooks";
import type { components } from "@/api/schema";
import { Name } from "@/shared/Name";
import { Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { quantity } from "@/shared/times";
import { showFault, showToast } from "@/shared/toasts";
import { browserOf } from "../rules/browsers";
import classes from "../settings.module.css";

type SessionFacts = components["schemas"]["SessionFacts"];

async function end(id: string): Promise<void> {
  await request("/api/session/end", { method: "POST", body: JSON.stringify({ id }) });
}

export function Sessions() {
  const client = useQueryClient();
  const sessions = useQuery({
    queryKey: ["me", "sessions"],
    queryFn: ({ signal }) => getJson<{ sessions: SessionFacts[] }>("/api/session", signal),
    staleTime: 0,
  });
  const canAct = useConnection() === "live";
  const [isBusy, setBusy] = useState(false);
  if (sessions.isError) return <Fault error={sessions.error} onRetry={() => void sessions.refetch()} />;
  if (sessions.isPending) return <Loading rows={3} label="Loading sessions" />;
  const rows = sessions.data.sessions.toSorted((a, b) => Number(b.is_this) - Number(a.is_this));
  const others = rows.filter((row) => !row.is_this);
  const endAll = async (ids: readonly string[]) => {
    setBusy(true);
    try {
      for (const id of ids) await end(id);
      showToast(`${quantity(ids.length, "session")} ended.`);
    } catch (error) {
      showFault(error, "It was not ended");
    }
    setBusy(false);
    await client.invalidateQueries({ queryKey: ["me", "sessions"] });
  };
  return (
    <section className={classes.section} aria-label="Sessions">
      <p className={classes.hint}>A session ends by itself after 7 days without use, and after 30 days at most. Who is ended is signed out at once.</p>
      <ul className={classes.rows}>
        {rows.map((row) => (
          <li key={row.id} className={classes.row}>
            <span className={classes.rowName}>
              <span title={row.user_agent}>
                <Name>{browserOf(row.user_agent)}</Name>
              </span>
              {row.is_this && <span className={classes.chip}>this one</span>}
            </span>
            <span className={classes.rowFacts}>
              used <Time at={row.last_used_at} />, signed in <Time at={row.created_at} />
            </span>
            {row.is_this ? (
              <span />
            ) : (
              <Button variant="default" disabled={!canAct || isBusy} aria-label={`End the session of ${browserOf(row.user_agent)}`} onClick={() => void endAll([row.id])}>
                End
              </Button>
            )}
          </li>
        ))}
      </ul>
      {others.length > 1 && (
        <Button variant="default" disabled={!canAct || isBusy} onClick={() => void endAll(others.map((row) => row.id))}>
          End the {others.length} others
        </Button>
      )}
      {others.length === 0 && <p className={classes.hint}>No other browser is signed in.</p>}
    </section>
  );
}
