/** The head of a review: what is to change, who proposed it, and what was said so far. */
import { Anchor } from "@mantine/core";
import { IconAlertTriangle, IconArrowLeft, IconMessage2, IconUser } from "@tabler/icons-react";
import { useMemo } from "react";
import { Link } from "wouter";
import type { ShownReview } from "@/api/entries";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { WholePath } from "@/shared/Place";
import { countHidden, splitPath } from "@/shared/names";
import { kindWord, shortId } from "@/shared/reviews/words";
import { CopyButton } from "@/shared/states";
import { Time } from "@/shared/Time";
import { quantity } from "@/shared/times";
import classes from "./review.module.css";

export function Facts({ review }: { review: ShownReview }) {
  const { folder, name } = splitPath(review.path);
  return (
    <header className={classes.facts}>
      <div className={classes.factsLine}>
        <Link to="/" className={classes.back ?? ""} aria-label="Back to the inbox">
          <IconArrowLeft size={18} stroke={1.6} />
        </Link>
        <h1 className={classes.fileName}>
          {review.kind !== "edit" && <span className={classes.kind}>{kindWord(review.kind)} </span>}
          <Name>{name}</Name>
          {review.destination && (
            <>
              {" → "}
              <Name>{review.destination}</Name>
            </>
          )}
        </h1>
        <span className={classes.fileFolder}>
          <WholePath path={folder} />
        </span>
      </div>
      <div className={classes.factsSub}>
        {review.is_new_file && <span className={classes.chip}>new file</span>}
        {review.round > 1 && <span className={classes.chip}>round {review.round}</span>}
        {review.client && <Name>{review.client}</Name>}
        <span>
          proposed <Time at={review.created_at} />
        </span>
        <span>
          <Time at={review.expires_at} until />
        </span>
        {review.encoding.toLowerCase() !== "utf-8" && review.kind === "edit" && <span>{review.encoding}</span>}
        <span className={classes.id}>
          {shortId(review.review_id)}
          <CopyButton text={`holdfast review show ${shortId(review.review_id)}`} label="Copy the command that shows this review" />
        </span>
      </div>
      <AgentsNote review={review} />
      {review.reason && (
        <blockquote className={classes.words}>
          <IconUser size={16} stroke={1.6} aria-hidden />
          <span>
            <span className={classes.speaker}>You said:</span> <Words text={review.reason} />
          </span>
        </blockquote>
      )}
    </header>
  );
}

/** Show the agent's reason as the words of the program that proposed. */
export function AgentsNote({ review }: { review: ShownReview }) {
  if (!review.note) return null;
  return (
    <blockquote className={classes.words}>
      <IconMessage2 size={16} stroke={1.6} aria-hidden />
      <span>
        <span className={classes.speaker}>{review.client ? <Name>{review.client}</Name> : "The agent"} says:</span> <Words text={review.note} />
      </span>
    </blockquote>
  );
}

/** Say how many characters of the change would not be seen, where they are not drawn as their code points. */
export function HiddenWarning({ review, onShow }: { review: ShownReview; onShow: () => void }) {
  const count = useMemo(() => {
    const added = review.hunks.flatMap((hunk) => hunk.body.split("\n").filter((line) => line.startsWith("+")));
    return countHidden(added.join("\n"));
  }, [review]);
  if (count === 0) return null;
  return (
    <Anchor component="button" size="sm" className={classes.warning ?? ""} onClick={onShow}>
      <IconAlertTriangle size={14} stroke={1.8} aria-hidden />
      {quantity(count, "hidden character")}
    </Anchor>
  );
}
