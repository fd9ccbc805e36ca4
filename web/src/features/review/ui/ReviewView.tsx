/** One review: its diff, the marks on its hunks, the person's own text, and the decision. */
import { Button, SegmentedControl, Switch } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useCallback, useMemo, useReducer, useRef, useState } from "react";
import type { ShownReview } from "@/api/entries";
import { useCanAct } from "@/api/hooks";
import { Diff, type DiffHandle } from "@/shared/diff/Diff";
import { makeModel, textRanges, type Hunk } from "@/shared/diff/hunks";
import { useKeys } from "@/shared/keys";
import { displayName } from "@/shared/names";
import { prefer, usePreferences } from "@/shared/preferences";
import { approveLabel, countUnseen, isUndecided, mark, NO_MARKS, takenHunks } from "@/shared/reviews/marks";
import { Statement } from "@/shared/reviews/Statement";
import { Loading } from "@/shared/states";
import { lineHunks } from "@/shared/diff/line_diff";
import { dropDraft, loadDraft, saveDraft } from "@/shared/drafts";
import { approval, approvalOfText, rejection, revision, type DecideArguments } from "../rules/decision";
import { useColours } from "./colours";
import { DecisionBar, Question } from "./DecisionBar";
import { Facts, HiddenWarning } from "./Facts";
import { HunkHead } from "./HunkHead";
import { Standing } from "./Standing";
import classes from "./review.module.css";

const Editor = lazy(() => import("./Editor"));

export interface ReviewViewProps {
  review: ShownReview;
  isBusy: boolean;
  /** The review that followed this one while it was on screen; nothing can be decided on what is no longer proposed. */
  newer: ShownReview | null;
  appliedAs: string | null;
  onDecide: (decision: DecideArguments) => void;
  onShowNewer: () => void;
}

type Mode = "read" | "edit" | "compare" | "news";

export function ReviewView(props: ReviewViewProps) {
  const { review, isBusy, newer, appliedAs, onDecide, onShowNewer } = props;
  const canAct = useCanAct();
  const preferences = usePreferences();
  const isNarrow = useMediaQuery("(max-width: 700px)");
  const scroller = useRef<HTMLDivElement>(null);
  const diff = useRef<DiffHandle>(null);
  const model = useMemo(() => makeModel(review.before, review.hunks), [review]);
  const [marks, dispatch] = useReducer(mark, NO_MARKS);
  const [active, setActive] = useState(0);
  const draft = useDraft(review);
  const [mode, setMode] = useState<Mode>("read");
  const isOpen = isUndecided(review) && appliedAs === null;
  const isEdit = review.kind === "edit";
  const view = isNarrow ? "unified" : preferences.diffView;
  const ranges = useMemo(() => textRanges(review.before, review.after, model.hunks), [review, model]);
  const onSeen = useCallback((hashes: string[]) => dispatch({ type: "saw", hashes }), []);

  const go = (to: number) => {
    const index = Math.max(0, Math.min(model.hunks.length - 1, to));
    setActive(index);
    diff.current?.scrollToHunk(index);
  };
  const colours = useColours(review);
  const current: Hunk | undefined = model.hunks[active];
  useKeys("Review", [
    { keys: "n", label: "Next hunk", run: () => go(active + 1), isMotion: true },
    { keys: "p", label: "Previous hunk", run: () => go(active - 1), isMotion: true },
    { keys: "Space", label: "Mark the hunk as seen", run: () => current && dispatch({ type: "toggleSeen", hash: current.hash }), isMotion: true },
    { keys: "x", label: "Take or leave out the hunk", run: () => current && dispatch({ type: "toggleTaken", hash: current.hash }), isMotion: true, isOff: !isOpen },
    { keys: "w", label: "Show what changed since you looked", run: () => (isEdit ? setMode("news") : onShowNewer()), isOff: newer === null },
    { keys: "s", label: "Side by side or one column", run: () => prefer({ diffView: view === "split" ? "unified" : "split" }), isOff: isNarrow },
  ]);

  const unseen = countUnseen(model.hunks, marks);
  const taken = takenHunks(model.hunks, marks).length;
  const problem =
    newer !== null ? "The review has changed." : isEdit && model.hunks.length > 0 && taken === 0 ? "Nothing is taken: reject it instead." : null;
  const decide = (decision: DecideArguments) => onDecide(decision);

  if (mode === "edit") {
    return (
      <div className={classes.review}>
        <Facts review={review} />
        <Suspense fallback={<Loading />}>
          <Editor
            path={review.path}
            before={review.before}
            proposed={review.after}
            text={draft.text ?? review.after}
            ranges={ranges}
            isNarrow={isNarrow}
            onChange={draft.keep}
            onDone={() => setMode("compare")}
            onLeave={() => setMode("read")}
          />
        </Suspense>
        <div className={classes.bar}>
          <Button size="sm" disabled={!canAct || (draft.text ?? review.after) === review.after} title="Ctrl Enter" onClick={() => setMode("compare")}>
            Approve my text…
          </Button>
          <Button size="sm" variant="default" onClick={() => setMode("read")}>
            Back to the proposal
          </Button>
          <span className={classes.barStatus}>{draft.isKept ? "Your draft is kept in this browser." : "This browser has no room for a draft."}</span>
        </div>
      </div>
    );
  }
  if (mode === "compare" && draft.text !== null) {
    const mine = draft.text;
    return (
      <Compare
        review={review}
        title="What your text changes in the proposal"
        from={review.after}
        to={mine}
        footer={
          <Question
            text="The agent is told how your text differs."
            yes="Approve my text"
            isBusy={!canAct || isBusy || newer !== null}
            onYes={() => decide(approvalOfText(review, mine))}
            onLeave={() => setMode("edit")}
          />
        }
      />
    );
  }
  if (mode === "news" && newer) {
    return (
      <Compare
        review={review}
        title="What changed since you looked"
        from={review.after}
        to={newer.after}
        footer={
          <Question text="Marks are taken back; your draft stays." yes="Show the new version" isBusy={false} onYes={onShowNewer} onLeave={() => setMode("read")} />
        }
      />
    );
  }
  return (
    <div className={classes.review}>
      <Facts review={review} />
      {newer && (
        <div className={classes.notice} role="status">
          <span>{newer.round > review.round ? "The agent proposed again." : "This review changed since you looked."}</span>
          {isEdit && (
            <Button variant="default" title="w" onClick={() => setMode("news")}>
              Show what changed
            </Button>
          )}
          <Button variant="default" onClick={onShowNewer}>
            Show the new version
          </Button>
        </div>
      )}
      {isEdit && (
        <div className={classes.tools}>
          {!isNarrow && (
            <SegmentedControl
              size="xs"
              aria-label="View"
              value={view}
              onChange={(value) => prefer({ diffView: value })}
              data={[
                { value: "split", label: "Split" },
                { value: "unified", label: "Unified" },
              ]}
            />
          )}
          <Switch size="xs" label="Wrap" checked={preferences.wrap} onChange={(event) => prefer({ wrap: event.currentTarget.checked })} />
          <HiddenWarning review={review} onShow={() => go(firstHidden(model.hunks))} />
          {draft.text !== null && draft.text !== review.after && isOpen && (
            <Button variant="light" onClick={() => setMode("edit")}>
              {draft.isOfThis ? "Go on with your draft" : "Open your draft of the earlier text"}
            </Button>
          )}
          <span className={classes.spring} />
          {model.hunks.length > 1 && (
            <span className={classes.progress}>
              {model.hunks.filter((hunk) => marks.seen.has(hunk.hash)).length}/{model.hunks.length} seen
            </span>
          )}
        </div>
      )}
      <div ref={scroller} className={classes.scroller} role="region" aria-label="The change" tabIndex={0}>
        {isEdit ? (
          <Diff
            ref={diff}
            model={model}
            view={view}
            wrap={preferences.wrap || isNarrow}
            label={`Changes of ${displayName(review.path)}`}
            scroller={scroller}
            colours={colours}
            activeHunk={model.hunks.length > 1 ? active : -1}
            isLeftOut={(hunk) => marks.leftOut.has(hunk.hash)}
            onSeen={onSeen}
            renderHead={(hunk) => (
              <HunkHead
                hunk={hunk}
                count={model.hunks.length}
                isTaken={!marks.leftOut.has(hunk.hash)}
                isSeen={marks.seen.has(hunk.hash)}
                isFixed={!isOpen}
                onTake={() => dispatch({ type: "toggleTaken", hash: hunk.hash })}
                onSeen={() => dispatch({ type: "toggleSeen", hash: hunk.hash })}
              />
            )}
          />
        ) : (
          <Statement text={review.statement ?? ""} />
        )}
        {isEdit && model.hunks.length === 0 && <p className={classes.dim}>The proposed text is the text of the file.</p>}
      </div>
      {isOpen ? (
        <DecisionBar
          label={approveLabel(model.hunks, marks)}
          unseen={isEdit ? unseen : 0}
          canAct={canAct && newer === null}
          isBusy={isBusy}
          problem={problem}
          hasText={isEdit}
          onApprove={() => decide(approval(review, model.hunks, marks))}
          onEdit={() => setMode("edit")}
          onSendBack={(reason) => decide(revision(review, reason, draftToSend(draft.text, review)))}
          onReject={(reason) => decide(rejection(review, reason))}
          status={canAct ? "" : "Off while disconnected or read-only."}
        />
      ) : (
        <Standing review={review} appliedAs={appliedAs} />
      )}
    </div>
  );
}

/** Return the person's text when there is one that differs: what goes back is then their text, not only their words. */
function draftToSend(text: string | null, review: ShownReview): string | undefined {
  return text !== null && text !== review.after ? text : undefined;
}

function firstHidden(hunks: readonly Hunk[]): number {
  return Math.max(0, hunks.findIndex((hunk) => hunk.lines.some((line) => line.kind === "add" && /[^\t\x20-\x7e]/.test(line.text))));
}

interface DraftState {
  text: string | null;
  isOfThis: boolean;
  isKept: boolean;
  keep: (text: string) => void;
}

function useDraft(review: ShownReview): DraftState {
  const [stored, setStored] = useState(() => loadDraft(review.review_id));
  const [isKept, setKept] = useState(true);
  const keep = useCallback(
    (text: string) => {
      if (text === review.after) dropDraft(review.review_id);
      else setKept(saveDraft(review.review_id, review.shown_hash, text));
      setStored({ shownHash: review.shown_hash, text, savedAt: 0 });
    },
    [review],
  );
  return { text: stored?.text ?? null, isOfThis: stored?.shownHash === review.shown_hash, isKept, keep };
}

interface CompareProps {
  review: ShownReview;
  title: string;
  from: string;
  to: string;
  footer: React.ReactNode;
}

/** Show how two texts differ, of which the server knows one at most. */
function Compare({ review, title, from, to, footer }: CompareProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const { wrap } = usePreferences();
  const model = useMemo(() => makeModel(from, lineHunks(from, to)), [from, to]);
  return (
    <div className={classes.review}>
      <Facts review={review} />
      <div className={classes.tools}>
        <h2 className={classes.compareTitle}>{title}</h2>
      </div>
      <div ref={scroller} className={classes.scroller} role="region" aria-label={title} tabIndex={0}>
        <Diff
          model={model}
          view="unified"
          wrap={wrap}
          label={title}
          scroller={scroller}
          renderHead={(hunk) => <span className={classes.dim}>lines {hunk.afterFrom + 1}–{hunk.afterTo}</span>}
        />
      </div>
      {footer}
    </div>
  );
}
