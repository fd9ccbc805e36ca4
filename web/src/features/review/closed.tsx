/** Reviews that have ended, the last one first, with what became of each. */
import { Button } from "@mantine/core";
import { IconArrowLeft } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "@/api/client";
import type { ClosedReview } from "@/api/entries";
import { useCanAct } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { displayName, splitPath } from "@/shared/names";
import { Place } from "@/shared/Place";
import { Counts } from "@/shared/reviews/Counts";
import { kindWord } from "@/shared/reviews/words";
import { Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { useUndo } from "@/shared/undo";
import classes from "./ui/review.module.css";

const OUTCOMES = { committed: "written", rejected: "rejected", expired: "expired" } as const;

export default function ClosedPage() {
  const [, navigate] = useLocation();
  const closed = useInfiniteQuery({
    queryKey: ["reviews", "closed_reviews"],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      call("closed_reviews", pageParam === "" ? { limit: 50 } : { limit: 50, cursor: pageParam }, signal),
    getNextPageParam: (page) => page.next_cursor,
  });
  useKeys("Closed reviews", [{ keys: "u", label: "Back to the inbox", run: () => navigate("/"), isMotion: true }]);
  const rows = closed.data?.pages.flatMap((page) => page.reviews) ?? [];
  return (
    <div className={classes.closed}>
      <div className={classes.factsLine}>
        <Link to="/" className={classes.back ?? ""} aria-label="Back to the inbox">
          <IconArrowLeft size={18} stroke={1.6} />
        </Link>
        <h1 className={classes.fileName}>Closed reviews</h1>
      </div>
      {closed.isError && <Fault error={closed.error} onRetry={() => void closed.refetch()} />}
      {closed.isPending && <Loading />}
      {closed.isSuccess && rows.length === 0 && <Empty title="No review was closed yet.">What you decided stands here, with its undo where it was written.</Empty>}
      <ul className={classes.closedRows}>
        {rows.map((review) => (
          <Row key={review.review_id} review={review} />
        ))}
      </ul>
      {closed.hasNextPage && (
        <Button variant="default" disabled={closed.isFetchingNextPage} onClick={() => void closed.fetchNextPage()}>
          Show earlier ones
        </Button>
      )}
    </div>
  );
}

function Row({ review }: { review: ClosedReview }) {
  const undo = useUndo();
  const canAct = useCanAct();
  const [isBusy, setBusy] = useState(false);
  const { folder, name } = splitPath(review.path);
  const isUndone = review.change_status === "UNDONE";
  const { change_id: changeId } = review;
  return (
    <li className={classes.closedRow}>
      <span className={classes.outcome}>{isUndone ? "undone" : OUTCOMES[review.outcome]}</span>
      <span className={classes.closedName}>
        {review.kind !== "edit" && <span className={classes.kind}>{kindWord(review.kind)} </span>}
        <span className={classes.closedTitle}>
          <Name>{name}</Name>
        </span>
        <span className={classes.closedPlace}>
          <Place folder={folder} />
        </span>
        {review.reason && (
          <span className={classes.closedReason}>
            <Words text={review.reason} />
          </span>
        )}
      </span>
      <span className={classes.closedFacts}>
        {review.added !== undefined && review.removed !== undefined && <Counts added={review.added} removed={review.removed} />}
      </span>
      <span className={classes.closedWho}>
        <Name>{review.client}</Name>
      </span>
      <span className={classes.closedWhen}>
        <Time at={review.decided_at ?? review.created_at} />
      </span>
      <span className={classes.closedAction}>
        {changeId && !isUndone && (
          <Button
            variant="default"
            disabled={!canAct || isBusy}
            aria-label={`Undo the change of ${displayName(name)}`}
            onClick={() => {
              setBusy(true);
              void undo(changeId).finally(() => setBusy(false));
            }}
          >
            Undo
          </Button>
        )}
      </span>
    </li>
  );
}
