/** Search in folders and in the store: by words and meaning, by exact text, by name; a hit opens at its line. */
import { SegmentedControl, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { call } from "@/api/client";
import { useMe } from "@/api/hooks";
import { LineText } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { Empty, Fault, Loading } from "@/shared/states";
import { quantity } from "@/shared/times";
import classes from "../files.module.css";
import { nameOf } from "../opened";
import { idOf, parentOf, type Place } from "../rules/place";
import { bestLines, exactMarks, lineStart, markText, wordMarks } from "../rules/search";

export type By = "meaning" | "text" | "name" | "store";

/** One hit: where, at which line or byte, and the text around it. */
interface Hit {
  place: Place;
  line?: number;
  byte?: number;
  text: string;
}

interface Hits {
  hits: Hit[];
  notices: string[];
}

const LIMITS = { meaning: 20, text: 200, name: 200, store: 20 } as const;
const TYPING_MS = 250;

async function find(by: By, query: string, scope: Place | null, signal: AbortSignal): Promise<Hits> {
  const path = scope?.kind === "local" ? scope.path : "";
  if (by === "store") {
    const project = scope?.kind === "store" ? scope.project : "*";
    const prefix = scope?.kind === "store" && scope.path ? `${scope.path}/` : "";
    const { chunks } = await call("file_search", { project, query, path_prefix: prefix, limit: LIMITS.store }, signal);
    return {
      notices: [],
      hits: chunks.map((chunk) => ({
        place: { kind: "store", project: chunk.project ?? project, path: chunk.file_path },
        byte: chunk.file_seek_start_bytes,
        text: chunk.chunk_content,
      })),
    };
  }
  if (by === "meaning") {
    const { hits, notices, ready } = await call("find_passages", { query, path, limit: LIMITS.meaning }, signal);
    return {
      notices: ready < 100 ? [`The index is ${ready} % ready.`, ...notices] : notices,
      hits: hits.map((hit) => ({ place: { kind: "local", path: hit.path }, text: hit.text, ...(hit.line ? { line: hit.line } : {}) })),
    };
  }
  const wanted = { text: query, path, limit: LIMITS[by] };
  if (by === "name") {
    const { hits, is_whole: isWhole } = await call("find_names", wanted, signal);
    return { notices: isWhole ? [] : ["There are more."], hits: hits.map((hit) => ({ place: { kind: "local", path: hit.path }, text: "" })) };
  }
  const { hits, is_whole: isWhole } = await call("find_lines", wanted, signal);
  return {
    notices: isWhole ? [] : ["There are more: narrow the search."],
    hits: hits.map((hit) => ({ place: { kind: "local", path: hit.path }, line: hit.line, text: hit.text })),
  };
}

export interface SearchPaneProps {
  query: string;
  by: By;
  /** The folder that is open, or null. */
  scope: Place | null;
  onSearch: (query: string, by: By) => void;
  onOpen: (place: Place, at: { line?: number; byte?: number }) => void;
}

export function SearchPane({ query, by, scope, onSearch, onOpen }: SearchPaneProps) {
  const me = useMe();
  const [typed, setTyped] = useState(query);
  const [asked] = useDebouncedValue(typed.trim(), TYPING_MS);
  const [isNarrow, setNarrow] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    if (asked !== query) onSearch(asked, by);
  }, [asked, query, by, onSearch]);
  const within = isNarrow && scope && (scope.kind === "store") === (by === "store") ? scope : null;
  const found = useQuery({
    queryKey: [by === "store" ? "store" : "files", "search", by, asked, within && idOf(within)],
    queryFn: ({ signal }) => find(by, asked, within, signal),
    enabled: asked !== "",
    staleTime: 0,
  });
  const marks = useMemo(() => (by === "text" || by === "name" ? exactMarks(asked) : wordMarks(asked)), [by, asked]);
  const ways = [
    ...(me.kind === "person"
      ? [
          { value: "meaning", label: "Meaning" },
          { value: "text", label: "Text" },
          { value: "name", label: "Name" },
        ]
      : []),
    { value: "store", label: "Store" },
  ];
  return (
    <div className={classes.searchPane}>
      <div className={classes.searchHead}>
        <TextInput
          ref={input}
          aria-label="Search"
          placeholder="Words, a question, or a name"
          value={typed}
          spellCheck={false}
          onChange={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "ArrowDown") return;
            event.preventDefault();
            document.querySelector<HTMLElement>("[data-hit]")?.focus();
          }}
        />
        <SegmentedControl size="xs" fullWidth aria-label="Search by" value={by} data={ways} onChange={(value) => onSearch(asked, value as By)} />
        {scope && (scope.kind === "store") === (by === "store") && (
          <label className={classes.scope}>
            <input type="checkbox" checked={isNarrow} onChange={(event) => setNarrow(event.currentTarget.checked)} />
            <span>
              Only in <Name>{nameOf(scope)}</Name>
            </span>
          </label>
        )}
      </div>
      <div className={classes.hits} role="region" aria-label="Hits" tabIndex={-1}>
        {asked === "" && <Empty title="Search everything that is known here." command="holdfast search QUERY DIR" />}
        {found.isError && <Fault error={found.error} onRetry={() => void found.refetch()} />}
        {asked !== "" && found.isPending && <Loading label="Searching" />}
        {found.data?.notices.map((notice) => (
          <p key={notice} className={classes.hint}>
            {notice}
          </p>
        ))}
        {found.data?.hits.length === 0 && <Empty title="No matches." />}
        {found.data && found.data.hits.length > 0 && (
          <>
            <p className={classes.hint} role="status">
              {quantity(found.data.hits.length, "hit")}
            </p>
            <ul className={classes.hitList}>
              {found.data.hits.map((hit, at) => (
                <li key={`${idOf(hit.place)}:${hit.line ?? hit.byte ?? ""}:${at}`}>
                  <HitRow hit={hit} marks={marks} isName={by === "name"} onOpen={onOpen} />
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </div>
  );
}

function HitRow({ hit, marks, isName, onOpen }: { hit: Hit; marks: RegExp | null; isName: boolean; onOpen: SearchPaneProps["onOpen"] }) {
  const { first, lines } = useMemo(() => bestLines(hit.text, marks), [hit.text, marks]);
  const line = hit.line === undefined ? undefined : hit.line + first;
  const byte = hit.byte === undefined ? undefined : hit.byte + lineStart(hit.text, first);
  const folder = parentOf(hit.place);
  return (
    <button
      type="button"
      data-hit
      className={classes.hit}
      onClick={() => onOpen(hit.place, { ...(line === undefined ? {} : { line }), ...(byte === undefined ? {} : { byte }) })}
      onKeyDown={(event) => {
        const next = event.key === "ArrowDown" ? "nextElementSibling" : event.key === "ArrowUp" ? "previousElementSibling" : null;
        if (!next) return;
        event.preventDefault();
        event.currentTarget.parentElement?.[next]?.querySelector<HTMLElement>("[data-hit]")?.focus();
      }}
    >
      <span className={classes.hitPlace}>
        <span className={classes.hitName}>
          <Name>{nameOf(hit.place)}</Name>
          {line !== undefined && <span className={classes.dim}>:{line}</span>}
        </span>
        <span className={classes.hitFolder}>
          {folder.kind === "store" && <>{folder.project} </>}
          <Name>{folder.path || "/"}</Name>
        </span>
      </span>
      {!isName && (
        <span className={classes.hitText}>
          {lines.map((text, at) => (
            <span key={at} className={classes.hitLine}>
              <Marked text={text} marks={marks} />
            </span>
          ))}
        </span>
      )}
    </button>
  );
}

function Marked({ text, marks }: { text: string; marks: RegExp | null }) {
  return markText(text.slice(0, 400), marks).map((piece, at) =>
    piece.isMarked ? (
      <mark key={at} className={classes.mark}>
        <LineText text={piece.text} />
      </mark>
    ) : (
      <LineText key={at} text={piece.text} />
    ),
  );
}
