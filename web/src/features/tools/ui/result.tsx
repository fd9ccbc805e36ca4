/** What a call answered: as a person reads it, as the blocks that a model gets, and as it came. */
import { Button, SegmentedControl } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import type { EntryAnswer } from "@/api/client";
import { ApiFault } from "@/api/fault";
import { CopyButton, Fault } from "@/shared/states";
import { formatDuration, formatSize, quantity } from "@/shared/times";
import { blocksOf, blocksOfFault, bytesOf, estimateTokens, tokensOf, type Block } from "../rules/answers";
import { writeJson } from "../rules/json_text";
import classes from "../tools.module.css";
import { DataView, PlainText } from "./data_view";

export type Outcome =
  | { state: "running"; stop: () => void }
  | { state: "done"; answer: EntryAnswer<unknown> }
  | { state: "failed"; fault: ApiFault; durationMs: number };

const VIEWS = [
  { value: "person", label: "Person" },
  { value: "agent", label: "Agent" },
  { value: "raw", label: "Raw" },
];

export function Result({ outcome }: { outcome: Outcome }) {
  const [query, setQuery] = useSearchParams();
  const view = VIEWS.find((each) => each.value === query.get("as"))?.value ?? "person";
  const setView = (value: string) =>
    setQuery(
      (old) => {
        const next = new URLSearchParams(old);
        if (value === "person") next.delete("as");
        else next.set("as", value);
        return next;
      },
      { replace: true },
    );
  const isFailed = outcome.state === "failed";
  return (
    <section className={classes.result} aria-label="Result">
      <div className={classes.resultHead}>
        <SegmentedControl size="xs" data={VIEWS} value={view} onChange={setView} aria-label="Result as" />
        <span className={classes.figures} role="status">
          {outcome.state === "running" ? "Running…" : <Figures outcome={outcome} />}
        </span>
        {outcome.state === "running" && (
          <Button variant="default" onClick={outcome.stop}>
            Stop
          </Button>
        )}
      </div>
      {outcome.state !== "running" && (
        <div className={classes.resultBody}>
          {view === "raw" && <Raw outcome={outcome} />}
          {view === "agent" && <AgentView blocks={isFailed ? blocksOfFault(outcome.fault) : blocksOf(outcome.answer)} isError={isFailed} />}
          {view === "person" && (isFailed ? <Fault error={outcome.fault} /> : <PersonView answer={outcome.answer} />)}
        </div>
      )}
    </section>
  );
}

type Ended = Exclude<Outcome, { state: "running" }>;

function Figures({ outcome }: { outcome: Ended }) {
  const blocks = outcome.state === "done" ? blocksOf(outcome.answer) : blocksOfFault(outcome.fault);
  const took = outcome.state === "done" ? outcome.answer.duration_ms : outcome.durationMs;
  return (
    <>
      {outcome.state === "done" ? "Done" : outcome.fault.code}, about {quantity(tokensOf(blocks), "token")}, {formatDuration(took)}
    </>
  );
}

function PersonView({ answer }: { answer: EntryAnswer<unknown> }) {
  const blocks = blocksOf(answer);
  const media = blocks.filter((block) => block.type !== "text");
  const texts = answer.text.filter((text) => text !== "");
  const hasData = answer.data !== null && answer.data !== undefined;
  return (
    <>
      {media.map((block, at) => (
        <Media key={at} block={block} />
      ))}
      {hasData ? <DataView value={answer.data} /> : texts.map((text, at) => <PlainText key={at} text={text} label={`Text ${at + 1}`} />)}
      {!hasData && texts.length === 0 && media.length === 0 && <p className={classes.hint}>It answered nothing: that is all it says when it is done.</p>}
    </>
  );
}

function AgentView({ blocks, isError }: { blocks: readonly Block[]; isError: boolean }) {
  return (
    <>
      <p className={classes.hint}>
        {isError ? "An error, marked as one. The model gets" : "The model gets"} {quantity(blocks.length, "block")}, just as below.
      </p>
      {blocks.map((block, at) => (
        <article key={at} className={classes.block}>
          <header className={classes.blockHead}>
            <span>{describe(block)}</span>
            {block.text !== undefined && <CopyButton text={block.text} label={`Copy block ${at + 1}`} />}
          </header>
          {block.text === undefined ? <Media block={block} /> : <PlainText text={block.text} label={`Block ${at + 1}`} />}
        </article>
      ))}
    </>
  );
}

function describe(block: Block): string {
  if (block.text !== undefined) return `text, about ${quantity(estimateTokens(block.text), "token")}`;
  const data = block.data ?? block.resource?.blob ?? "";
  return `${block.type}, ${block.mimeType ?? block.resource?.mimeType ?? "unknown type"}, ${formatSize(bytesOf(data))}`;
}

/** Types that are shown; anything else, such as a drawing with scripts, is only named. */
const IMAGES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"];

function Media({ block }: { block: Block }) {
  const type = block.mimeType ?? "";
  const canShow = block.data !== undefined && (IMAGES.includes(type) || type.startsWith("audio/"));
  const url = useBlobUrl(canShow ? (block.data ?? "") : "", type);
  if (!canShow) return <p className={classes.hint}>{describe(block)}</p>;
  if (!url) return null;
  return type.startsWith("audio/") ? <audio controls src={url} /> : <img className={classes.image} src={url} alt={`Answer: ${describe(block)}`} />;
}

function useBlobUrl(data: string, type: string): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (data === "") return;
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, type]);
  return url;
}

function Raw({ outcome }: { outcome: Ended }) {
  const text = useMemo(() => {
    if (outcome.state === "done") return writeJson(outcome.answer);
    const { code, message, retryable, details } = outcome.fault;
    return writeJson({ error: { code, message, retryable, ...details } });
  }, [outcome]);
  return (
    <>
      <div className={classes.blockHead}>
        <span>The answer of the console&apos;s API</span>
        <CopyButton text={text} label="Copy the answer" />
      </div>
      <PlainText text={text} label="The answer" />
    </>
  );
}
