/** A save that met another one: what both made of the text, line by line, with the choice of mine, theirs or both in its place. */
import { Button, SegmentedControl } from "@mantine/core";
import { useMemo, useState } from "react";
import { LineText } from "@/shared/LineText";
import { quantity } from "@/shared/times";
import classes from "../files.module.css";
import { conflictParts, resolve, type Choice, type Part } from "../rules/conflict";

const SHOWN_ALIKE = 3;

export interface ConflictProps {
  base: string;
  mine: string;
  theirs: string;
  isBusy: boolean;
  onSave: (text: string) => void;
  onBack: () => void;
}

export function Conflict({ base, mine, theirs, isBusy, onSave, onBack }: ConflictProps) {
  const parts = useMemo(() => conflictParts(base, mine, theirs), [base, mine, theirs]);
  const [choices, setChoices] = useState<ReadonlyMap<number, Choice>>(new Map());
  const asked = parts.filter((part) => part.type === "choice");
  const left = asked.filter((part) => (choices.get(part.id) ?? part.suggested) === null).length;
  const text = resolve(parts, choices);
  const chooseAll = (choice: Choice) => setChoices(new Map(asked.map((part) => [part.id, choice])));
  return (
    <section className={classes.conflict} aria-label="Conflict">
      <div className={classes.notice} role="alert">
        <span>
          The file was changed by somebody else since you opened it. Nothing was saved.{" "}
          {left > 0 ? `${quantity(left, "place")} to choose.` : "Every place is chosen."}
        </span>
        <span className={classes.buttons}>
          <Button variant="default" onClick={() => chooseAll("mine")}>
            All mine
          </Button>
          <Button variant="default" onClick={() => chooseAll("theirs")}>
            All theirs
          </Button>
          <Button variant="default" onClick={() => chooseAll("both")}>
            All both
          </Button>
        </span>
      </div>
      <div className={classes.conflictText} tabIndex={0} role="group" aria-label="Both texts">
        {parts.map((part, at) =>
          part.type === "same" ? (
            <Alike key={at} lines={part.lines} isFirst={at === 0} isLast={at === parts.length - 1} />
          ) : (
            <Place
              key={at}
              part={part}
              choice={choices.get(part.id) ?? part.suggested}
              onChoose={(choice) => setChoices(new Map([...choices, [part.id, choice]]))}
            />
          ),
        )}
      </div>
      <div className={classes.bar}>
        <Button disabled={text === null || isBusy} onClick={() => text !== null && onSave(text)}>
          Save this text
        </Button>
        <Button variant="default" onClick={onBack}>
          Back to my text
        </Button>
      </div>
    </section>
  );
}

function Alike({ lines, isFirst, isLast }: { lines: readonly string[]; isFirst: boolean; isLast: boolean }) {
  const head = isFirst ? [] : lines.slice(0, SHOWN_ALIKE);
  const tail = isLast ? [] : lines.slice(Math.max(head.length, lines.length - SHOWN_ALIKE));
  const hidden = lines.length - head.length - tail.length;
  return (
    <>
      <Lines lines={head} kind="same" />
      {hidden > 0 && <p className={classes.alike}>⋯ {quantity(hidden, "line")} alike</p>}
      <Lines lines={tail} kind="same" />
    </>
  );
}

function Place({ part, choice, onChoose }: { part: Part & { type: "choice" }; choice: Choice; onChoose: (choice: Choice) => void }) {
  return (
    <div className={classes.choice} role="group" aria-label={`Place ${part.id}`}>
      <div className={classes.choiceHead}>
        <SegmentedControl
          size="xs"
          aria-label={`Take for place ${part.id}`}
          value={choice ?? ""}
          onChange={(value) => onChoose(value as Choice)}
          data={[
            { value: "mine", label: "Mine" },
            { value: "theirs", label: "Theirs" },
            { value: "both", label: "Both" },
          ]}
        />
        {choice === null && <span className={classes.dim}>Both changed these lines.</span>}
      </div>
      <Lines lines={part.theirs} kind="theirs" isOut={choice === "mine"} />
      <Lines lines={part.mine} kind="mine" isOut={choice === "theirs"} />
    </div>
  );
}

function Lines({ lines, kind, isOut = false }: { lines: readonly string[]; kind: "same" | "mine" | "theirs"; isOut?: boolean }) {
  return lines.map((line, at) => (
    <div key={at} className={classes.conflictLine} data-kind={kind} data-out={isOut}>
      <span className={classes.side}>{kind === "same" ? "" : kind}</span>
      <code>
        <LineText text={line} />
      </code>
    </div>
  ));
}
