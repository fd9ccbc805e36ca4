/** The review panel: what an agent proposes, shown inside the chat, and the person's decision on it. */
import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from "react";
import type { ShownReview } from "@/api/entries";
import { Diff } from "@/shared/diff/Diff";
import { makeModel, type Hunk } from "@/shared/diff/hunks";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { countHidden, displayName, splitPath } from "@/shared/names";
import { Counts } from "@/shared/reviews/Counts";
import { approveLabel, countUnseen, mark, NO_MARKS, takenHunks } from "@/shared/reviews/marks";
import { Statement } from "@/shared/reviews/Statement";
import { kindWord, shortId } from "@/shared/reviews/words";
import { Time } from "@/shared/Time";
import { quantity } from "@/shared/times";
import type { Bridge } from "./bridge";
import { asToolFault, Button, Comment, ConsoleLink, Message, Question, start, textOf, tokenOf, useSession, type Session } from "./frame";
import classes from "./panel.module.css";

type PanelReview = ShownReview & { is_open: boolean; can_decide: boolean; console_url?: string | null };

interface Decision {
  decision: "approve" | "reject" | "revise";
  hunks?: string[];
  reason?: string;
}

const OUTCOMES: Record<string, string> = {
  APPROVE: "Approved. Nothing is written yet: the agent writes it.",
  REVIEW: "Sent back to the agent.",
  REJECT: "Rejected. Nothing is changed.",
  DONE: "Approved, and the agent has done it.",
  EXPIRED: "Nobody decided in time. Nothing was written.",
};

function ReviewPanel() {
  const session = useSession();
  const { review, fault, load } = useReview(session);
  const { bridge, result, cancelled, hasHost } = session;
  const [outcome, setOutcome] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  const decide = async (decision: Decision) => {
    if (!review || !result) return;
    setBusy(true);
    setProblem(null);
    try {
      const args = { token: tokenOf(result), shown_hash: review.shown_hash, ...decision };
      const decided = await bridge.callTool<{ user_action: string; message: string }>("panel_decide", args);
      setOutcome(decided.user_action);
      const isTold = await bridge.tell(decided.message);
      if (!isTold) setProblem("The agent was not told. Ask it to go on.");
    } catch (error) {
      const refused = asToolFault(error);
      setProblem(`Nothing was decided. ${refused.message}`);
      await load();
    } finally {
      setBusy(false);
    }
  };

  if (cancelled !== null && !result) return <Message>The call was cancelled, so there is nothing to decide here.</Message>;
  if (!result) return <Message>{hasHost ? "The agent is preparing a proposal…" : "Waiting for the host…"}</Message>;
  if (result.isError) return <Message>Nothing was proposed. {result.content?.find((block) => block.text)?.text ?? ""}</Message>;
  if (fault) {
    return (
      <Message>
        <Words text={fault} /> The review waits all the same: <code>holdfast review</code> shows it, and so does <code>holdfast open</code>.
      </Message>
    );
  }
  if (!review) return <Message>Loading the review…</Message>;
  return (
    <main className={classes.panel}>
      <Facts review={review} />
      <Body
        key={review.shown_hash}
        review={review}
        bridge={bridge}
        isBusy={isBusy}
        outcome={outcome ?? (review.can_decide ? null : standing(review))}
        canDecide={review.can_decide && outcome === null}
        onDecide={(decision) => void decide(decision)}
      />
      {problem && (
        <p className={classes.fault} role="alert">
          <Words text={problem} />
        </p>
      )}
    </main>
  );
}

/** Return where a review stands that this panel cannot decide on; null for one that waits, and has to be decided elsewhere. */
function standing(review: PanelReview): string | null {
  if (review.user_action === "APPROVE" && !review.is_open) return "DONE";
  return review.user_action in OUTCOMES ? review.user_action : null;
}

function useReview({ bridge, input, result }: Session) {
  const [review, setReview] = useState<PanelReview | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const load = useCallback(async () => {
    if (!result || result.isError) return;
    const token = tokenOf(result);
    const args = {
      ...(token ? { token } : {}),
      session_path: textOf(result.structuredContent?.["session_path"]),
      path: textOf(input["path"]),
    };
    try {
      setReview(await bridge.callTool<PanelReview>("panel_review", args));
      setFault(null);
    } catch (error) {
      setFault(asToolFault(error).message);
    }
  }, [bridge, input, result]);
  useEffect(() => void load(), [load]);
  return { review, fault, load };
}

function Facts({ review }: { review: PanelReview }) {
  const { folder, name } = splitPath(review.path);
  const hidden = useMemo(() => countHidden(review.hunks.flatMap((hunk) => hunk.body.split("\n").filter((line) => line.startsWith("+"))).join("\n")), [review]);
  return (
    <header className={classes.facts}>
      <h1 className={classes.title}>
        {review.kind !== "edit" && <span className={classes.kind}>{kindWord(review.kind)} </span>}
        <Name>{name}</Name>
        {review.destination && (
          <>
            {" → "}
            <Name>{review.destination}</Name>
          </>
        )}
      </h1>
      <div className={classes.folder}>
        <Name>{folder}</Name>
      </div>
      <div className={classes.sub}>
        {review.is_new_file && <span className={classes.chip}>new file</span>}
        {review.round > 1 && <span className={classes.chip}>round {review.round}</span>}
        {review.client && <Name>{review.client}</Name>}
        {review.can_decide && <Time at={review.expires_at} until />}
        {hidden > 0 && <span className={classes.warning}>{quantity(hidden, "hidden character")}</span>}
      </div>
      {review.note && (
        <blockquote className={classes.words}>
          <span className={classes.speaker}>{review.client ? <Name>{review.client}</Name> : "The agent"} says:</span> <Words text={review.note} />
        </blockquote>
      )}
      {review.reason && (
        <blockquote className={classes.words}>
          <span className={classes.speaker}>You said:</span> <Words text={review.reason} />
        </blockquote>
      )}
    </header>
  );
}

interface BodyProps {
  review: PanelReview;
  bridge: Bridge;
  isBusy: boolean;
  outcome: string | null;
  canDecide: boolean;
  onDecide: (decision: Decision) => void;
}

function Body({ review, bridge, isBusy, outcome, canDecide, onDecide }: BodyProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const model = useMemo(() => makeModel(review.before, review.hunks), [review]);
  const [marks, dispatch] = useReducer(mark, NO_MARKS);
  const [asking, setAsking] = useState<"approve" | "revise" | "reject" | null>(null);
  const onSeen = useCallback((hashes: string[]) => dispatch({ type: "saw", hashes }), []);
  const isEdit = review.kind === "edit";
  const unseen = isEdit ? countUnseen(model.hunks, marks) : 0;
  const taken = takenHunks(model.hunks, marks);
  const isNothingTaken = isEdit && model.hunks.length > 0 && taken.length === 0;
  const leave = () => setAsking(null);
  const approve = () => {
    leave();
    onDecide({ decision: "approve", ...(taken.length < model.hunks.length ? { hunks: taken.map((hunk) => hunk.hash) } : {}) });
  };
  const console_ = <ConsoleLink bridge={bridge} url={review.console_url} command={`holdfast review show ${shortId(review.review_id)}`} />;
  const hasBody = isEdit ? model.hunks.length > 0 : Boolean(review.statement);
  return (
    <>
      {hasBody && (
        <div ref={scroller} className={classes.scroller} role="region" aria-label="The change" tabIndex={0}>
          {isEdit ? (
            <Diff
              model={model}
              view="unified"
              wrap
              label={`Changes of ${displayName(review.path)}`}
              scroller={scroller}
              isLeftOut={(hunk) => marks.leftOut.has(hunk.hash)}
              onSeen={onSeen}
              renderHead={(hunk) => (
                <HunkHead
                  hunk={hunk}
                  canChoose={canDecide && model.hunks.length > 1}
                  isTaken={!marks.leftOut.has(hunk.hash)}
                  onTake={() => dispatch({ type: "toggleTaken", hash: hunk.hash })}
                />
              )}
            />
          ) : (
            <Statement text={review.statement ?? ""} />
          )}
        </div>
      )}
      {!canDecide ? (
        <div className={classes.bar}>
          <span className={classes.outcome} role="status">
            {outcome === null ? "This panel can only show the change: decide in the console." : OUTCOMES[outcome]}
          </span>
          {console_}
        </div>
      ) : asking === "approve" ? (
        <Question text={`${quantity(unseen, "hunk")} of what you approve ${unseen === 1 ? "was" : "were"} not on screen yet.`} yes="Approve all the same" isBusy={isBusy} onYes={approve} onLeave={leave} />
      ) : asking === null ? (
        <div className={classes.bar}>
          <Button isMain isOff={isBusy || isNothingTaken} title={isNothingTaken ? "Nothing is taken: reject it instead." : ""} onClick={() => (unseen > 0 ? setAsking("approve") : approve())}>
            {approveLabel(model.hunks, marks)}
          </Button>
          <Button isOff={isBusy} onClick={() => setAsking("revise")}>
            Send back…
          </Button>
          <Button isOff={isBusy} onClick={() => setAsking("reject")}>
            Reject…
          </Button>
          <span className={classes.spring} />
          {console_}
        </div>
      ) : (
        <Comment
          key={asking}
          label={asking === "revise" ? "What should the agent change?" : "Why not? The agent is told."}
          yes={asking === "revise" ? "Send back" : "Reject"}
          isNeeded={asking === "revise"}
          isBusy={isBusy}
          onYes={(reason) => {
            leave();
            onDecide({ decision: asking, ...(reason ? { reason } : {}) });
          }}
          onLeave={leave}
        />
      )}
    </>
  );
}

interface HunkHeadProps {
  hunk: Hunk;
  canChoose: boolean;
  isTaken: boolean;
  onTake: () => void;
}

function HunkHead({ hunk, canChoose, isTaken, onTake }: HunkHeadProps) {
  const first = hunk.afterFrom + 1;
  const last = Math.max(first, hunk.afterTo);
  return (
    <div className={classes.hunkHead}>
      {canChoose ? (
        <label>
          <input type="checkbox" checked={isTaken} onChange={onTake} />
          Hunk {hunk.index + 1}
        </label>
      ) : (
        <span>Hunk {hunk.index + 1}</span>
      )}
      <span className={classes.dim}>{first === last ? `line ${first}` : `lines ${first}–${last}`}</span>
      <Counts added={hunk.added} removed={hunk.removed} />
      {!isTaken && <span className={classes.chip}>left out</span>}
    </div>
  );
}

start(<ReviewPanel />);
