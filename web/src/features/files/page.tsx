/** Files: the directories of this machine and the projects of the store in one tree, and what is in them. */
import { SegmentedControl } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useEntry, useMe, useServerEvent } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Empty, Fault, Loading } from "@/shared/states";
import { showToast, showUndo } from "@/shared/toasts";
import { quantity } from "@/shared/times";
import { useUndo } from "@/shared/undo";
import type { Done } from "./actions";
import { useAddress } from "./address";
import classes from "./files.module.css";
import { idOf, paramsOf, placeOf, type Place } from "./rules/place";
import type { Entry } from "./rules/rows";
import { exactMarks, wordMarks } from "./rules/search";
import { fileTree } from "./tree_model";
import { Dialogs, type Asked } from "./ui/dialogs";
import { FileView, type View } from "./ui/FileView";
import { SearchPane, type By } from "./ui/SearchPane";
import { TreePane } from "./ui/TreePane";

const VIEWS: readonly string[] = ["text", "history", "info"];
const WAYS: readonly string[] = ["meaning", "text", "name", "store"];

export default function FilesPage() {
  const me = useMe();
  const [params, go] = useAddress();
  const tops = useTops();
  const place = useMemo(() => placeOf(params), [params]);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [step, setStep] = useState<"side" | "content">(place ? "content" : "side");
  const isSearch = params.get("side") === "search";
  const query = params.get("q") ?? "";
  const by = wayOf(params.get("by"), me.kind === "person");
  const view = VIEWS.includes(params.get("view") ?? "") ? (params.get("view") as View) : "text";
  const marks = useMemo(() => (query === "" ? null : by === "text" ? exactMarks(query) : by === "name" ? null : wordMarks(query)), [query, by]);
  const finish = useFinish();

  const open = useCallback(
    (to: Place, at: { line?: number; byte?: number } = {}) => {
      const { line, byte } = at;
      setStep("content");
      go({ project: null, view: null, ...paramsOf(to), line: line === undefined ? null : String(line), byte: byte === undefined ? null : String(byte) }, true);
    },
    [go],
  );
  const search = useCallback((typed: string, way: By) => go({ q: typed, by: way }), [go]);
  const showSide = (side: string) => {
    setStep("side");
    if (side !== "search" && place) void fileTree.reveal(place);
    go(side === "search" ? { side, q: query } : { side: null, q: null, by: null });
  };
  useReveal(tops.entries, place);
  useServerEvent((event) => {
    if (["change.made", "review.applied", "resync", "hello"].includes(event.name)) fileTree.refresh();
  });
  useEffect(() => {
    const refresh = () => fileTree.refresh();
    window.addEventListener("focus", refresh);
    return () => window.removeEventListener("focus", refresh);
  }, []);
  useKeys("Files", [
    { keys: "R", label: "Look again at what is there", run: finish.refresh },
    { keys: "s", label: "Search", run: () => showSide("search") },
    { keys: "u", label: "Back to the tree", run: () => showSide("tree"), isMotion: true },
  ]);
  const done = (message: ReactNode, what: Done) => {
    if (message !== "") finish(message, what);
    else fileTree.refresh();
    if (place && idOf(place) !== idOf(what.place) && asked?.what !== "folder") open(what.place);
  };
  const isTop = place !== null && (tops.entries?.some((top) => idOf(top.place) === idOf(place)) ?? false);
  return (
    <div className={classes.page} data-step={step}>
      <h1 className="hf-visually-hidden">Files</h1>
      <section className={classes.sidePane} aria-label={isSearch ? "Search" : "Tree"}>
        <div className={classes.sideHead}>
          <SegmentedControl
            size="xs"
            fullWidth
            aria-label="Tree or search"
            value={isSearch ? "search" : "tree"}
            onChange={showSide}
            data={[
              { value: "tree", label: "Tree" },
              { value: "search", label: "Search" },
            ]}
          />
        </div>
        {isSearch ? (
          <SearchPane query={query} by={by} scope={fileTree.currentFolder()} onSearch={search} onOpen={open} />
        ) : tops.error ? (
          <div className={classes.padded}>
            <Fault error={tops.error} onRetry={tops.retry} />
          </div>
        ) : !tops.entries ? (
          <Loading />
        ) : tops.entries.length === 0 ? (
          <div className={classes.padded}>
            <Empty title="No directory and no project yet." command={me.kind === "person" ? "holdfast serve DIR" : "holdfast files write PROJECT PATH"}>
              Directories that agents were given, and projects of the store, are shown here.
            </Empty>
          </div>
        ) : (
          <TreePane onOpen={open} onAsk={setAsked} />
        )}
      </section>
      <section className={classes.contentPane} aria-label="Content">
        {place ? (
          <FileView
            key={idOf(place)}
            place={place}
            isTop={isTop}
            view={view}
            line={numberOf(params.get("line"))}
            byte={numberOf(params.get("byte"))}
            marks={marks}
            onView={(to) => go({ view: to === "text" ? null : to })}
            onAsk={setAsked}
            onDone={done}
            onUndo={finish.undo}
            onBack={() => setStep("side")}
          />
        ) : (
          <div className={classes.padded}>
            <Empty title="Nothing is open.">Choose a file in the tree, or search for one with s.</Empty>
          </div>
        )}
      </section>
      <Dialogs
        asked={asked}
        onClose={() => setAsked(null)}
        onDone={(message, what, action) => {
          setAsked(null);
          finish(message, what);
          if (action === "move" || action === "file") open(what.place);
          void fileTree.reveal(what.place);
        }}
      />
    </div>
  );
}

function numberOf(text: string | null): number | null {
  const value = Number(text);
  return text !== null && Number.isInteger(value) && value >= 0 ? value : null;
}

function wayOf(text: string | null, isPerson: boolean): By {
  if (!isPerson) return "store";
  return WAYS.includes(text ?? "") ? (text as By) : "meaning";
}


/** Return the roots and projects: a tenant has projects alone. */
function useTops(): { entries: Entry[] | null; error: unknown; retry: () => void } {
  const me = useMe();
  const isPerson = me.kind === "person";
  const hasStore = me.groups.includes("store");
  const roots = useEntry("files", "known_roots", {}, { enabled: isPerson });
  const projects = useEntry("store", "project_list", {}, { enabled: hasStore, staleTime: 0 });
  const entries = useMemo(() => {
    if ((isPerson && !roots.data) || (hasStore && !projects.data)) return null;
    const local = (roots.data?.roots ?? [])
      .filter((root) => root.exists)
      .map((root): Entry => ({ place: { kind: "local", path: root.path }, name: root.name, type: "root", ...(root.writable ? {} : { note: "read-only" }) }));
    const stored = (projects.data?.projects ?? []).map(
      (project): Entry => ({
        place: { kind: "store", project: project.project, path: "" },
        name: project.project,
        type: "project",
        note: quantity(project.file_count, "file"),
      }),
    );
    return [...local, ...stored];
  }, [isPerson, hasStore, roots.data, projects.data]);
  useEffect(() => {
    if (entries) fileTree.setTops(entries);
  }, [entries]);
  const retry = () => {
    void roots.refetch();
    void projects.refetch();
  };
  return { entries, error: roots.error ?? projects.error, retry };
}

/** Show in the tree what the address names, once when the page opens. */
function useReveal(entries: Entry[] | null, place: Place | null): void {
  const isRevealed = useRef(false);
  useEffect(() => {
    if (!entries || isRevealed.current) return;
    isRevealed.current = true;
    if (place) void fileTree.reveal(place);
    else {
      const [first] = entries;
      if (first) fileTree.setOpen(first, true);
    }
  }, [entries, place]);
}

/** Return a function that tells what was done, with its undo, and asks anew what it changed. */
function useFinish() {
  const client = useQueryClient();
  const undo = useUndo();
  return useMemo(() => {
    const refresh = async () => {
      fileTree.refresh();
      await Promise.all(["files", "store", "changes"].map((noun) => client.invalidateQueries({ queryKey: [noun] })));
    };
    const undoAndRefresh = async (changeId: string) => {
      await undo(changeId);
      await refresh();
    };
    const finish = (message: ReactNode, { undo: way }: Done) => {
      void refresh();
      if (way === null) showToast(message);
      else if ("changeId" in way) showUndo(message, "Put back what was there before", () => undoAndRefresh(way.changeId));
      else showUndo(message, "Put back what was there before", async () => {
        await way.run();
        await refresh();
      });
    };
    return Object.assign(finish, { undo: undoAndRefresh, refresh: () => void refresh() });
  }, [client, undo]);
}
