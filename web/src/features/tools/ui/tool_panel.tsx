/** One tool: what it does, its arguments as a form and as JSON, and what it answered. */
import { Button, SegmentedControl } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconPlayerPlay } from "@tabler/icons-react";
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { request, type EntryAnswer } from "@/api/client";
import { asFault } from "@/api/fault";
import { useConnection, useMe } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { CopyButton, Keys, Loading } from "@/shared/states";
import { quantity } from "@/shared/times";
import { showUndo } from "@/shared/toasts";
import { useUndo } from "@/shared/undo";
import { changesOf } from "../rules/answers";
import { isObject, keyOf, lineAndColumn, putAt, readJson, sayPath, writeJson, type Path, type Place } from "../rules/json_text";
import { emptyOf, problemsOf, type Problem, type Schema } from "../rules/schema";
import { commandOf, EFFECTS, isRefusedReadOnly, type ToolFacts } from "../rules/tools";
import classes from "../tools.module.css";
import { Declarations } from "./declarations";
import { Form } from "./form";
import { Result, type Outcome } from "./result";

const JsonEditor = lazy(() => import("./json_editor"));

/** What was typed for each tool since the page was loaded: looking at another tool loses nothing. */
const drafts = new Map<string, string>();

/** Run a call with the text as it was typed, so that no number of it is written anew. */
async function send(tool: string, text: string, signal: AbortSignal): Promise<EntryAnswer<unknown>> {
  const response = await request(`/api/${encodeURIComponent(tool)}`, { method: "POST", body: text, signal });
  return (await response.json()) as EntryAnswer<unknown>;
}

export function ToolPanel({ tool }: { tool: ToolFacts }) {
  const me = useMe();
  const connection = useConnection();
  const undo = useUndo();
  const [query, setQuery] = useSearchParams();
  const schema = tool.schema as Schema;
  const [text, setText] = useState(() => drafts.get(tool.name) ?? writeJson(emptyOf({ type: "object", ...schema })));
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [isAsking, setAsking] = useState(false);
  const [goTo, setGoTo] = useState<Place | null>(null);
  const running = useRef<AbortController | null>(null);
  const confirm = useRef<HTMLButtonElement>(null);
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => {
    if (isAsking) confirm.current?.focus();
  }, [isAsking]);

  const read = useMemo(() => readJson(text), [text]);
  const view = query.get("view") === "json" ? "json" : "form";
  const setView = (value: string) =>
    setQuery(
      (old) => {
        const next = new URLSearchParams(old);
        if (value === "form") next.delete("view");
        else next.set("view", value);
        return next;
      },
      { replace: true },
    );
  const isObjectText = read.fault === null && isObject(read.value);
  const problems = useMemo(() => (read.fault === null ? problemsOf(schema, read.value) : []), [read, schema]);
  const put = (typed: string) => {
    drafts.set(tool.name, typed);
    setText(typed);
    setAsking(false);
  };
  const show = (place: Place) => {
    setView("json");
    setGoTo({ ...place });
  };
  const showPath = (path: Path) => {
    const places = read.fault === null ? read.places : new Map<string, Place>();
    const lengths = Array.from(path, (_part, at) => path.length - at);
    const place = lengths.map((length) => places.get(keyOf(path.slice(0, length)))).find((each) => each !== undefined);
    if (place) show(place);
    else setView("json");
  };
  const stop = stopOf(tool, connection === "live", me.read_only);
  const canRun = isObjectText && stop === null && outcome?.state !== "running";

  const run = async () => {
    setAsking(false);
    const controller = new AbortController();
    running.current = controller;
    setOutcome({ state: "running", stop: () => controller.abort() });
    const began = performance.now();
    try {
      const answer = await send(tool.name, text, controller.signal);
      setOutcome({ state: "done", answer });
      if (tool.effect !== "read" && tool.name !== "mcp_pipe") offerUndo(tool.name, changesOf(answer), undo);
    } catch (error) {
      if (controller.signal.aborted) setOutcome(null);
      else setOutcome({ state: "failed", fault: asFault(error), durationMs: performance.now() - began });
    }
  };
  const ask = () => {
    if (!canRun) return;
    if (tool.effect === "read") void run();
    else setAsking(true);
  };
  useHotkeys([["mod+Enter", () => document.querySelector("[aria-modal=true]") === null && ask()]], []);
  useKeys(tool.name, [{ keys: "v", label: "Form or JSON", run: () => setView(view === "form" ? "json" : "form") }]);

  return (
    <div className={classes.panel}>
      <div className={classes.left}>
        <div className={classes.scroll}>
        <Head tool={tool} />
        <div className={classes.arguments}>
          <div className={classes.argumentsHead}>
            <SegmentedControl
              size="xs"
              data={[
                { value: "form", label: "Form" },
                { value: "json", label: "JSON" },
              ]}
              value={view}
              onChange={setView}
              aria-label="Arguments as"
            />
            <CopyButton text={commandOf(tool, text, me.roots)} label="Copy as a command" />
          </div>
          {view === "json" ? (
            <Suspense fallback={<Loading rows={4} label="Loading the editor" />}>
              <JsonEditor text={text} fault={read.fault} goTo={goTo} onChange={put} />
            </Suspense>
          ) : !isObjectText ? (
            <p className={classes.hint}>The form shows the arguments again when the JSON is one object.</p>
          ) : read.isExact ? (
            <Form schema={schema} value={read.value} problems={shownIn(problems, read.value)} onPut={(path, value) => put(writeJson(putAt(read.value, path, value)))} onShowJson={showPath} />
          ) : (
            <p className={classes.hint}>A number here is larger than a form can hold exactly. The JSON view sends it as it is written.</p>
          )}
        </div>
        </div>
        <div className={classes.runBar}>
          <Wrong read={read} text={text} problems={view === "json" ? problems : []} places={read.fault === null ? read.places : new Map()} onShow={show} />
          {isAsking ? (
            <div className={classes.asking} role="group" aria-label="Confirm">
              <span>{tool.name} {EFFECTS[tool.effect]}. Run it?</span>
              <Button ref={confirm} onClick={() => void run()}>
                Run it
              </Button>
              <Button variant="default" onClick={() => setAsking(false)}>
                No
              </Button>
            </div>
          ) : (
            <div className={classes.row}>
              <Button leftSection={<IconPlayerPlay size={14} />} disabled={!canRun} onClick={ask}>
                Run
              </Button>
              <span className={classes.runKeys}>
                <Keys>Ctrl Enter</Keys>
              </span>
              {stop && <span className={classes.dim}>{stop}</span>}
            </div>
          )}
        </div>
      </div>
      <div className={classes.right}>
        {outcome === null ? <p className={classes.hint}>The answer stands here: as you read it, as a model gets it, and as it came.</p> : <Result outcome={outcome} />}
        <Declarations tool={tool.name} />
      </div>
    </div>
  );
}

/** Return why the tool cannot be run now, null when it can. */
function stopOf(tool: ToolFacts, isLive: boolean, isReadOnly: boolean): string | null {
  if (!isLive) return "Not connected.";
  return isReadOnly && isRefusedReadOnly(tool) ? "The server is read-only." : null;
}

/** Leave out of the form what only says that nothing was typed yet: its asterisk says so. */
function shownIn(problems: readonly Problem[], value: unknown): Problem[] {
  return problems.filter((problem) => problem.path.length > 0 || !isObject(value));
}

function offerUndo(tool: string, changes: readonly string[], undo: (changeId: string) => Promise<void>): void {
  if (changes.length === 0) return;
  showUndo(`${tool}: ${quantity(changes.length, "change")} made.`, "Put back what was there before", async () => {
    for (const change of changes.toReversed()) await undo(change);
  });
}

function Head({ tool }: { tool: ToolFacts }) {
  return (
    <header className={classes.toolHead}>
      <div className={classes.titleLine}>
        <Link href="/tools" className={classes.back ?? ""}>
          Tools
        </Link>
        <h1 className={classes.toolName}>{tool.name}</h1>
        <span className={classes.chip}>{EFFECTS[tool.effect]}</span>
        {tool.audience === "person" && <span className={classes.chip}>yours alone</span>}
      </div>
      <p className={classes.description}>{tool.description}</p>
    </header>
  );
}

type WrongProps = {
  read: ReturnType<typeof readJson>;
  text: string;
  problems: readonly Problem[];
  places: ReadonlyMap<string, Place>;
  onShow: (place: Place) => void;
};

/** Say what is wrong with the text and where: JSON that cannot be read stops the call, arguments that do not fit are told. */
function Wrong({ read, text, problems, places, onShow }: WrongProps) {
  if (read.fault) {
    const { fault } = read;
    return (
      <p className={classes.wrong} role="alert">
        <button type="button" className={classes.where} onClick={() => onShow(fault)}>
          Line {fault.line}, column {fault.column}
        </button>{" "}
        {fault.message}
      </p>
    );
  }
  if (!isObject(read.value)) {
    return (
      <p className={classes.wrong} role="alert">
        The arguments are one object, in braces.
      </p>
    );
  }
  return problems.slice(0, 3).map((problem) => {
    const place = places.get(keyOf(problem.path)) ?? places.get(keyOf(problem.path.slice(0, -1)));
    return (
      <p key={keyOf(problem.path)} className={classes.note}>
        {place && (
          <button type="button" className={classes.where} onClick={() => onShow(place)}>
            Line {lineAndColumn(text, place.from).line}
          </button>
        )}{" "}
        {sayPath(problem.path) || "The arguments"}: {problem.message}
      </p>
    );
  });
}
