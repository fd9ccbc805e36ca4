/** Several reviews of one program as one scroll, decided together: as many decisions, each with the hash that was on screen. */
import { Button } from "@mantine/core";
import { IconArrowLeft } from "@tabler/icons-react";
import { useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { Link, useLocation } from "wouter";
import { call } from "@/api/client";
import type { PendingReview, ShownReview } from "@/api/entries";
import { asFault } from "@/api/fault";
import { useCanAct } from "@/api/hooks";
import { Diff } from "@/shared/diff/Diff";
import { makeModel } from "@/shared/diff/hunks";
import { useKeys } from "@/shared/keys";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { displayName, splitPath } from "@/shared/names";
import { Place } from "@/shared/Place";
import { usePreferences } from "@/shared/preferences";
import { Counts } from "@/shared/reviews/Counts";
import { useDecide } from "@/shared/reviews/decide";
import { NO_MARKS } from "@/shared/reviews/marks";
import { Statement } from "@/shared/reviews/Statement";
import { kindWord } from "@/shared/reviews/words";
import { Fault, Loading } from "@/shared/states";
import { showToast } from "@/shared/toasts";
import { quantity } from "@/shared/times";
import { approval, rejection } from "../rules/decision";
import { useColours } from "./colours";
import { Question } from "./DecisionBar";
import { AgentsNote, HiddenWarning } from "./Facts";
import classes from "./review.module.css";

interface Outcome {
  decided: string[];
  failed: { path: string; message: string }[];
}

export function GroupView({ reviews, client }: { reviews: readonly PendingReview[]; client: string }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, navigate] = useLocation();
  const decide = useDecide();
  const canAct = useCanAct();
  const [asking, setAsking] = useState<"approve" | "reject" | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const viewedIds = useRef(new Set<string>());
  const queries = useQueries({
    queries: reviews.map((review) => ({
      queryKey: ["group", review.review_id],
      queryFn: () => call("show_review", { review_id: review.review_id }),
      staleTime: Infinity,
    })),
  });
  const loadedReviews = queries.flatMap((query) => (query.data ? [query.data] : []));
  const failed = queries.find((query) => query.isError);
  const isReady = loadedReviews.length === reviews.length;
  const isOff = !canAct || isBusy || !isReady || outcome !== null;
  const go = (by: number) => {
    const top = scroller.current?.getBoundingClientRect().top ?? 0;
    const sections = [...(scroller.current?.children ?? [])];
    const at = sections.findLastIndex((section) => section.getBoundingClientRect().top <= top + 1);
    sections[Math.max(0, Math.min(sections.length - 1, at + by))]?.scrollIntoView({ block: "start" });
  };
  useKeys("Group", [
    { keys: "a", label: `Approve ${reviews.length} (asks for Enter)`, run: () => setAsking("approve"), isOff },
    { keys: "r", label: `Reject ${reviews.length} (asks for Enter)`, run: () => setAsking("reject"), isOff },
    { keys: "n", label: "Next change", run: () => go(1), isMotion: true },
    { keys: "p", label: "Previous change", run: () => go(-1), isMotion: true },
    { keys: "u", label: "Back to the inbox", run: () => navigate("/") },
  ]);
  const onSeen = useCallback((id: string) => viewedIds.current.add(id), []);

  const decideAll = async (what: "approve" | "reject") => {
    setAsking(null);
    setBusy(true);
    const result: Outcome = { decided: [], failed: [] };
    for (const review of loadedReviews) {
      const hunks = makeModel(review.before, review.hunks).hunks;
      try {
        await decide(what === "approve" ? approval(review, hunks, NO_MARKS) : rejection(review, ""));
        result.decided.push(review.review_id);
      } catch (error) {
        result.failed.push({ path: review.path, message: asFault(error).message });
      }
    }
    setBusy(false);
    setOutcome(result);
    if (result.failed.length === 0) {
      showToast(what === "approve" ? `Approved ${quantity(result.decided.length, "change")}. The agent writes them.` : `Rejected ${quantity(result.decided.length, "change")}.`);
      navigate("/");
    }
  };
  const unseen = loadedReviews.filter((review) => !viewedIds.current.has(review.review_id)).length;
  return (
    <div className={classes.review}>
      <header className={classes.facts}>
        <div className={classes.factsLine}>
          <Link to="/" className={classes.back ?? ""} aria-label="Back to the inbox">
            <IconArrowLeft size={18} stroke={1.6} />
          </Link>
          <h1 className={classes.fileName}>{quantity(reviews.length, "change")}</h1>
          {client && <span className={classes.fileFolder}>proposed together by <Name>{client}</Name></span>}
        </div>
      </header>
      {outcome && outcome.failed.length > 0 && (
        <div className={classes.notice} role="alert">
          <div>
            {quantity(outcome.decided.length, "was", "were")} decided, {outcome.failed.length} not:
            <ul className={classes.failures}>
              {outcome.failed.map((each) => (
                <li key={each.path}>
                  <Name>{splitPath(each.path).name}</Name>: <Words text={each.message} />
                </li>
              ))}
            </ul>
          </div>
          <Button variant="default" onClick={() => navigate("/")}>
            Back to the inbox
          </Button>
        </div>
      )}
      <div ref={scroller} className={classes.scroller} role="region" aria-label="The changes" tabIndex={0}>
        {failed && <Fault error={failed.error} />}
        {!isReady && !failed && <Loading />}
        {isReady && loadedReviews.map((review) => <Section key={review.review_id} review={review} scroller={scroller} onSeen={onSeen} />)}
      </div>
      {asking ? (
        <Question
          text={
            asking === "reject"
              ? "The agent is told that all of them are rejected."
              : unseen > 0
                ? `${quantity(unseen, "change")} ${unseen === 1 ? "was" : "were"} not on screen to the end.`
                : "Nothing is written yet: the agent writes what is approved."
          }
          yes={asking === "approve" ? `Approve ${reviews.length}` : `Reject ${reviews.length}`}
          isBusy={isOff}
          onYes={() => void decideAll(asking)}
          onLeave={() => setAsking(null)}
        />
      ) : (
        <div className={classes.bar}>
          <Button size="sm" disabled={isOff} title="a, then Enter" onClick={() => setAsking("approve")}>
            Approve {reviews.length}…
          </Button>
          <Button size="sm" variant="default" disabled={isOff} title="r, then Enter" onClick={() => setAsking("reject")}>
            Reject {reviews.length}…
          </Button>
          <span className={classes.barStatus}>To decide on one alone, open it by its name.</span>
        </div>
      )}
    </div>
  );
}

interface SectionProps {
  review: ShownReview;
  scroller: RefObject<HTMLDivElement | null>;
  onSeen: (id: string) => void;
}

function Section({ review, scroller, onSeen }: SectionProps) {
  const { wrap } = usePreferences();
  const colours = useColours(review);
  const model = useMemo(() => makeModel(review.before, review.hunks), [review]);
  const hunksSeen = useRef(new Set<string>());
  const saw = useCallback(
    (hashes: string[]) => {
      for (const hash of hashes) hunksSeen.current.add(hash);
      if (hunksSeen.current.size >= model.hunks.length) onSeen(review.review_id);
    },
    [model, onSeen, review],
  );
  const added = model.hunks.reduce((total, hunk) => total + hunk.added, 0);
  const removed = model.hunks.reduce((total, hunk) => total + hunk.removed, 0);
  const { folder, name } = splitPath(review.path);
  const section = useRef<HTMLElement>(null);
  const isWhole = model.hunks.length === 0;
  useInView(section, scroller, isWhole, () => onSeen(review.review_id));
  return (
    <section ref={section} className={classes.section}>
      <h2 className={classes.sectionHead}>
        <Link to={`/reviews/${review.review_id}`}>
          {review.kind !== "edit" && <span className={classes.kind}>{kindWord(review.kind)} </span>}
          <Name>{name}</Name>
        </Link>
        <span className={classes.fileFolder}>
          <Place folder={folder} />
        </span>
        {review.is_new_file && <span className={classes.chip}>new file</span>}
        {review.kind === "edit" && <Counts added={added} removed={removed} />}
        <HiddenWarning review={review} onShow={() => section.current?.scrollIntoView()} />
      </h2>
      <AgentsNote review={review} />
      {review.kind === "edit" ? (
        <Diff
          model={model}
          view="unified"
          wrap={wrap}
          label={`Changes of ${displayName(review.path)}`}
          scroller={scroller}
          colours={colours}
          onSeen={saw}
          renderHead={(hunk) => (
            <span className={classes.dim}>
              lines {hunk.afterFrom + 1}–{Math.max(hunk.afterFrom + 1, hunk.afterTo)}
            </span>
          )}
        />
      ) : (
        <Statement text={review.statement ?? ""} />
      )}
    </section>
  );
}

/** Call `onSeen` once when the end of an element was in view, as far as `isWatched`: what has no hunks has no rows to count. */
function useInView(element: RefObject<HTMLElement | null>, scroller: RefObject<HTMLElement | null>, isWatched: boolean, onSeen: () => void): void {
  const newest = useRef(onSeen);
  useEffect(() => {
    newest.current = onSeen;
  });
  useEffect(() => {
    const target = element.current;
    if (!isWatched || !target) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting && entry.intersectionRect.bottom >= entry.boundingClientRect.bottom - 1)) return;
        newest.current();
        observer.disconnect();
      },
      { root: scroller.current, threshold: [0, 0.25, 0.5, 0.75, 1] },
    );
    observer.observe(target);
    return () => observer.disconnect();
  }, [element, scroller, isWatched]);
}
