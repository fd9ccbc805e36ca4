/** The page of one review, or of a group of them. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useLocation, useParams, useRoute } from "wouter";
import { call } from "@/api/client";
import type { PendingReview, ShownReview } from "@/api/entries";
import { asFault } from "@/api/fault";
import { useEntry, useServerEvent } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { splitPath } from "@/shared/names";
import { useDecide } from "@/shared/reviews/decide";
import { groupOf, groupReviews, waitsForYou, type ReviewGroup } from "@/shared/reviews/groups";
import { Empty, Fault, Loading } from "@/shared/states";
import { showFault, showToast } from "@/shared/toasts";
import type { DecideArguments } from "./rules/decision";
import { dropDraft } from "@/shared/drafts";
import { GroupView } from "./ui/GroupView";
import { ReviewView } from "./ui/ReviewView";
import classes from "./ui/review.module.css";

export default function ReviewPage() {
  const [isGroup] = useRoute("/group/:id");
  const { id = "" } = useParams();
  return isGroup ? <GroupPage key={id} id={id} /> : <SinglePage key={id} id={id} />;
}

function GroupPage({ id }: { id: string }) {
  const pending = useEntry("reviews", "pending_reviews", {});
  // The group stays as it was opened: decisions on its reviews do not take them off the screen.
  const [group, setGroup] = useState<ReviewGroup | null>(null);
  const groupAtId = pending.data ? groupOf(pending.data.reviews.filter(waitsForYou), id) : undefined;
  if (!group && groupAtId) setGroup(groupAtId);
  if (pending.isError && !group) return <Page error={pending.error} />;
  if (pending.isPending) return <Waiting />;
  if (!group) return <Closed />;
  return <GroupView reviews={group.reviews} client={group.client} />;
}

function Page({ error }: { error: unknown }) {
  return (
    <div className={classes.message}>
      <Fault error={error} />
    </div>
  );
}

function Waiting() {
  return (
    <div className={classes.message}>
      <Loading label="Loading the review" />
    </div>
  );
}

function Closed() {
  return (
    <div className={classes.message}>
      <Empty title="This review is closed." command="holdfast changes">
        It was decided, expired, or was withdrawn. What became of it stands under Closed reviews in the inbox, and in the list of changes.
      </Empty>
    </div>
  );
}

function SinglePage({ id }: { id: string }) {
  const query = useEntry("reviews", "show_review", { review_id: id }, { retry: false });
  const pending = useEntry("reviews", "pending_reviews", {});
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const decide = useDecide();
  const [isBusy, setBusy] = useState(false);
  const [appliedAs, setAppliedAs] = useState<string | null>(null);
  const [onScreen, setOnScreen] = useState<ShownReview | null>(null);
  const [hasDecided, setDecided] = useState(false);

  const fresh = query.data;
  if (fresh && fresh !== onScreen && (!onScreen || hasDecided || isSameProposal(fresh, onScreen))) {
    setOnScreen(fresh);
    setDecided(false); // what comes after the decision's own outcome is news again
  }
  const newer = fresh && onScreen && !isSameProposal(fresh, onScreen) ? fresh : null;

  const order = useMemo(() => {
    const reviews: PendingReview[] = pending.data?.reviews ?? [];
    return groupReviews(reviews.filter(waitsForYou)).flatMap((group) => group.reviews);
  }, [pending.data]);
  const at = order.findIndex((review) => review.review_id === id);
  const open = (review: PendingReview | undefined) => {
    if (review) navigate(`/reviews/${review.review_id}`);
  };
  const neighbours = onScreen ? [order[at + 1], order[at - 1]].flatMap((review) => (review ? [review.review_id] : [])).join(" ") : "";
  useEffect(() => {
    // What is decided next is there before it is asked for.
    for (const next of neighbours === "" ? [] : neighbours.split(" ")) {
      const args = { review_id: next };
      client.query({ queryKey: ["reviews", "show_review", args], queryFn: ({ signal }) => call("show_review", args, signal) }).catch(() => undefined);
    }
  }, [client, neighbours]);
  useKeys("Reviews", [
    { keys: "u", label: "Back to the inbox", run: () => navigate("/") },
    { keys: "j", label: "Next review", run: () => open(order[at + 1]), isMotion: true },
    { keys: "k", label: "Previous review", run: () => open(order[at - 1]), isMotion: true },
  ]);
  useServerEvent((event) => {
    if (event.name === "review.applied" && event.data["review_id"] === id) setAppliedAs(String(event.data["change_id"]));
  });

  const send = async (decision: DecideArguments) => {
    setBusy(true);
    try {
      await decide(decision);
    } catch (error) {
      const fault = asFault(error);
      showFault(fault, fault.code === "CONFLICT" ? "It changed since you looked" : "Nothing was decided");
      setBusy(false);
      return;
    }
    setBusy(false);
    dropDraft(id);
    showToast(<Decided path={onScreen?.path ?? ""} decision={decision.decision} />);
    setDecided(true);
    await client.invalidateQueries({ queryKey: ["reviews", "show_review", { review_id: id }] });
    const next = order[at + 1] ?? order[at - 1];
    if (next) open(next);
    else if (decision.decision !== "approve") navigate("/");
  };

  if (!onScreen) {
    if (query.isPending) return <Waiting />;
    if (query.isError) return asFault(query.error).code === "NOT_FOUND" ? <Closed /> : <Page error={query.error} />;
    return null;
  }
  return (
    <ReviewView
      key={onScreen.shown_hash}
      review={onScreen}
      isBusy={isBusy}
      newer={newer}
      appliedAs={appliedAs}
      onDecide={(decision) => void send(decision)}
      onShowNewer={() => setOnScreen(newer)}
    />
  );
}

/** Return whether two answers are of one text to decide on, so that the later one may take the place of the other. */
function isSameProposal(fresh: ShownReview, onScreen: ShownReview): boolean {
  return fresh.shown_hash === onScreen.shown_hash;
}

const DECIDED = { approve: "Approved", revise: "Sent back", reject: "Rejected" } as const;

function Decided({ path, decision }: { path: string; decision: DecideArguments["decision"] }) {
  return (
    <>
      {DECIDED[decision]}: <Name>{splitPath(path).name}</Name>.{decision === "approve" && " The agent writes it."}
    </>
  );
}
