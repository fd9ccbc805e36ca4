/** The bar at the bottom of a review: what can be decided, asked for in two steps where one would be a slip of a finger. */
import { Button, Textarea } from "@mantine/core";
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useKeys } from "@/shared/keys";
import { KeyHint } from "@/shared/KeyHint";
import { quantity } from "@/shared/times";
import classes from "./review.module.css";

export type Asking = "approve" | "back" | "reject" | null;

export interface DecisionBarProps {
  label: string;
  unseen: number;
  canAct: boolean;
  isBusy: boolean;
  /** Why approving is off, such as when no hunk is taken. */
  problem: string | null;
  hasText: boolean;
  onApprove: () => void;
  onEdit: () => void;
  onSendBack: (reason: string) => void;
  onReject: (reason: string) => void;
  status: ReactNode;
}

export function DecisionBar(props: DecisionBarProps) {
  const { label, unseen, canAct, isBusy, problem, hasText, onApprove, onEdit, onSendBack, onReject, status } = props;
  const [asking, setAsking] = useState<Asking>(null);
  const isOff = !canAct || isBusy;
  const ask = (what: Asking) => {
    if (!isOff) setAsking(what);
  };
  useKeys("Decide", [
    { keys: "a", label: "Approve (asks for Enter)", run: () => ask("approve"), isOff: isOff || problem !== null },
    { keys: "e", label: "Edit and approve my text", run: onEdit, isOff: isOff || !hasText },
    { keys: "c", label: "Send back with a comment", run: () => ask("back"), isOff },
    { keys: "r", label: "Reject (asks for Enter)", run: () => ask("reject"), isOff },
  ]);
  const leave = () => setAsking(null);
  if (asking === "approve") {
    return (
      <Question
        text={unseen > 0 ? `${quantity(unseen, "hunk")} of what you approve ${unseen === 1 ? "was" : "were"} not on screen yet.` : "Press Enter to approve what is shown. Nothing is written yet."}
        yes={unseen > 0 ? "Approve all the same" : label}
        isBusy={isOff}
        onYes={() => {
          leave();
          onApprove();
        }}
        onLeave={leave}
      />
    );
  }
  if (asking === "back" || asking === "reject") {
    const isBack = asking === "back";
    return (
      <Comment
        key={asking}
        label={isBack ? "What should the agent change?" : "Why not? The agent is told."}
        isNeeded={isBack}
        yes={isBack ? "Send back" : "Reject"}
        isBusy={isOff}
        onYes={(reason) => {
          leave();
          if (isBack) onSendBack(reason);
          else onReject(reason);
        }}
        onLeave={leave}
      />
    );
  }
  return (
    <div className={classes.bar}>
      <Button
        size="sm"
        disabled={isOff || problem !== null}
        title={problem ?? "a, then Enter"}
        rightSection={<KeyHint>a</KeyHint>}
        onClick={() => (unseen > 0 ? setAsking("approve") : onApprove())}
      >
        {label}
      </Button>
      {hasText && (
        <Button size="sm" variant="default" disabled={isOff} title="e" rightSection={<KeyHint>e</KeyHint>} onClick={onEdit}>
          Edit
        </Button>
      )}
      <Button size="sm" variant="default" disabled={isOff} title="c" rightSection={<KeyHint>c</KeyHint>} onClick={() => ask("back")}>
        Send back…
      </Button>
      <Button size="sm" variant="default" disabled={isOff} title="r" rightSection={<KeyHint>r</KeyHint>} onClick={() => ask("reject")}>
        Reject…
      </Button>
      <span className={classes.barStatus}>{problem ?? status}</span>
    </div>
  );
}

interface QuestionProps {
  text: string;
  yes: string;
  isBusy: boolean;
  onYes: () => void;
  onLeave: () => void;
}

/** A step that asks for Enter: the focus is on the button that does it. */
export function Question({ text, yes, isBusy, onYes, onLeave }: QuestionProps) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  return (
    <div className={classes.bar} role="group" aria-label="Confirm" onKeyDown={(event) => leaveOnEscape(event, onLeave)}>
      <span className={classes.question} role="status">
        {text}
      </span>
      <Button ref={button} size="sm" disabled={isBusy} onClick={onYes}>
        {yes}
      </Button>
      <Button size="sm" variant="default" onClick={onLeave}>
        Back
      </Button>
    </div>
  );
}

interface CommentProps {
  label: string;
  isNeeded: boolean;
  yes: string;
  isBusy: boolean;
  onYes: (text: string) => void;
  onLeave: () => void;
}

function Comment({ label, isNeeded, yes, isBusy, onYes, onLeave }: CommentProps) {
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const isOff = isBusy || (isNeeded && text.trim() === "");
  const onKeyDown = (event: KeyboardEvent) => {
    leaveOnEscape(event, onLeave);
    if (event.key === "Enter" && !event.shiftKey && !isOff && !event.nativeEvent.isComposing) {
      event.preventDefault();
      onYes(text.trim());
    }
  };
  return (
    <div className={classes.bar} role="group" aria-label={yes}>
      <Textarea
        ref={field}
        className={classes.comment ?? ""}
        label={label}
        description="Enter sends it, Shift Enter begins a line."
        autosize
        minRows={1}
        maxRows={6}
        maxLength={20_000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <Button size="sm" disabled={isOff} onClick={() => onYes(text.trim())}>
        {yes}
      </Button>
      <Button size="sm" variant="default" onClick={onLeave}>
        Back
      </Button>
    </div>
  );
}

function leaveOnEscape(event: KeyboardEvent, onLeave: () => void): void {
  if (event.key !== "Escape") return;
  event.preventDefault();
  onLeave();
}
