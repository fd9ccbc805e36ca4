/** One plan: while it is made, when its scan failed, and the plan itself. */
import { Button, TextInput } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconArrowLeft, IconX } from "@tabler/icons-react";
import { lazy, Suspense, useCallback, useMemo, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { useCanAct, useEntry } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { displayName, splitPath } from "@/shared/names";
import { WholePath } from "@/shared/Place";
import { Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { showFault } from "@/shared/toasts";
import { quantity } from "@/shared/times";
import classes from "../organise.module.css";
import { measuresLine, standing } from "../rules/words";
import { Banners } from "./Banners";
import { useCorrections } from "./corrections";
import { Explain } from "./Explain";
import { MoveTo } from "./MoveTo";
import { PlanBar } from "./PlanBar";
import { PlanTree } from "./PlanTree";
import { useProgress, type PlanProgress } from "./progress";
import { allRowsIn, type PlanHead, type PlanRow, type PlanRowsArguments } from "./rows";
import { ScanView } from "./ScanView";
import { Shelves } from "./Shelves";
import { usePlanWork } from "./work";

const Measures = lazy(() => import("./Measures"));

const SCAN_POLL_MS = 1000;
const BUSY_POLL_MS = 1000;

const TABS = [
  { id: "moves", label: "Moves", empty: "No file moves." },
  { id: "uncertain", label: "Needs a look", empty: "No file needs a look." },
  { id: "below", label: "Below 80 %", empty: "Every move is at least 80 % sure." },
  { id: "left_alone", label: "Left alone", empty: "You left no file where it is." },
  { id: "skipped", label: "Skipped", empty: "The scan skipped nothing." },
  { id: "stayed", label: "Stayed", empty: "Every file has moved." },
  { id: "all", label: "All", empty: "There is no file in this plan." },
] as const;

type Tab = (typeof TABS)[number]["id"];

const SIDES = [
  { id: "target", label: "Targets" },
  { id: "before", label: "Before" },
  { id: "after", label: "After" },
] as const;

export function PlanPage({ planId }: { planId: string }) {
  const isOfPlan = (scans: readonly { plan_id: string }[] | undefined) => scans?.some((scan) => scan.plan_id === planId) ?? false;
  const running = useEntry("plans", "running_scans", {}, { refetchInterval: (query) => (isOfPlan(query.state.data?.scans) ? SCAN_POLL_MS : false) });
  const scan = running.data?.scans.find((each) => each.plan_id === planId);
  const failed = running.data?.failed.find((each) => each.plan_id === planId);
  const isWorkedOn = running.data?.busy_plans.includes(planId) ?? false;
  const [, navigate] = useLocation();
  useKeys("Plan page", [{ keys: "u", label: "Back to the plans", run: () => navigate("/organise"), isMotion: true }]);
  if (running.isError) return <Fault error={running.error} onRetry={() => void running.refetch()} />;
  if (running.isPending) return <Loading rows={8} />;
  if (scan) return <ScanView scan={scan} />;
  if (failed) {
    return (
      <div className={classes.scan}>
        <h1>
          No plan for <WholePath path={failed.folder} />
        </h1>
        <p className={classes.dim}>
          {failed.code}: <Words text={failed.message} />
        </p>
        <Button component={Link} href="/organise/new" variant="default">
          Choose a folder…
        </Button>
      </div>
    );
  }
  return <LoadedPlan planId={planId} isWorkedOn={isWorkedOn} />;
}

function LoadedPlan({ planId, isWorkedOn }: { planId: string; isWorkedOn: boolean }) {
  const progress = useProgress(planId);
  const isPolled = isWorkedOn || progress !== null;
  const args = { plan_id: planId, view: "by_folder", limit: 1 } as const;
  const head = useEntry("plans", "plan_rows", args, { refetchInterval: isPolled ? BUSY_POLL_MS : false });
  if (head.isError) {
    return (
      <div className={classes.scan}>
        <Fault error={head.error} onRetry={() => void head.refetch()} />
        <Empty title="This plan cannot be shown.">Its scan was stopped, or its folder is not there any more.</Empty>
        <Button component={Link} href="/organise" variant="default">
          Back to the plans
        </Button>
      </div>
    );
  }
  if (head.isPending) return <Loading rows={8} label="Loading the plan" />;
  return <PlanView head={head.data} progress={progress} isWorkedOn={isWorkedOn} />;
}

interface PlanViewProps {
  head: PlanHead;
  progress: PlanProgress | null;
  isWorkedOn: boolean;
}

function PlanView({ head, progress, isWorkedOn }: PlanViewProps) {
  const planId = head.plan_id;
  const [query, setQuery] = useSearchParams();
  const tab: Tab = TABS.find((each) => each.id === query.get("tab"))?.id ?? "moves";
  const side = SIDES.find((each) => each.id === query.get("side"))?.id ?? "target";
  const filter = query.get("filter") ?? "";
  const set = (changes: Record<string, string>) =>
    setQuery(
      (old) => {
        const next = new URLSearchParams(old);
        for (const [name, value] of Object.entries(changes)) {
          if (value === "") next.delete(name);
          else next.set(name, value);
        }
        return next;
      },
      { replace: true },
    );
  const isPhone = useMediaQuery("(max-width: 700px)");
  const isRoomy = useMediaQuery("(min-width: 1100px)");
  const canAct = useCanAct();
  const corrections = useCorrections(planId);
  const work = usePlanWork(head);
  const [chosen, setChosen] = useState<ReadonlyMap<string, PlanRow>>(new Map());
  const [moving, setMoving] = useState<readonly PlanRow[] | null>(null);
  const [explained, setExplained] = useState<PlanRow | null>(null);
  const [hasMeasures, setMeasures] = useState(false);
  const [hashes, setHashes] = useState<readonly string[]>([]);
  const isBusy = isWorkedOn || work.doing === "execute" || work.doing === "undo" || (progress !== null && progress.phase !== "scan");
  const isOpen = head.status === "CREATED";
  const canCorrect = canAct && isOpen && !isBusy && work.doing === null;
  const canUndo = canAct && !isBusy && (head.totals["DONE"] ?? 0) > 0;
  const state = standing(head.status, head.totals, head.totals["moves"] ?? 0, isBusy);
  const isFlat = tab !== "moves" || filter !== "";
  const isByTarget = !isFlat && side === "target";
  const base = useMemo<PlanRowsArguments>(
    () => ({ plan_id: planId, view: isFlat ? tab : side === "target" ? "moves" : "all", side: isFlat ? "target" : side, filter }),
    [planId, isFlat, tab, side, filter],
  );
  const whole = useEntry("plans", "plan_rows", { plan_id: planId, view: "by_folder", side, limit: 1 }, { enabled: side !== "target" && !isFlat });
  const shown = side === "target" || isFlat ? head : whole.data;
  const { decide } = corrections;
  const onDecide = useCallback(
    (rows: readonly PlanRow[], folder: string | null) => {
      decide(rows.filter((row) => row.status !== "NOT_SCANNED").map((row) => row.address), folder);
      setChosen(new Map());
    },
    [decide],
  );
  const onMoveFolder = async (folder: string) => {
    try {
      setMoving(await allRowsIn(planId, folder));
    } catch (error) {
      showFault(error, "The files were not listed");
    }
  };
  const onUndo = (rows: readonly PlanRow[]) => {
    const ids = rows.flatMap((row) => (row.item_id === undefined ? [] : [row.item_id]));
    setChosen(new Map());
    void work.undo(ids);
  };
  const marked = useMemo(() => new Set(corrections.report?.changed.map((move) => move.path) ?? []), [corrections.report]);
  const isShownWhole = [...hashes, shown?.plan_hash].every((hash) => hash === head.plan_hash);
  const problem = corrections.isPending
    ? corrections.isSending
      ? "Judging the folder anew with your corrections…"
      : "Your corrections are about to be sent…"
    : shown === undefined
      ? "The files are being listed…"
      : isShownWhole
        ? null
        : "The plan has changed; what is shown is being brought up to date…";
  const step = (by: number) => {
    const tabs = tabsOf(head);
    const at = tabs.findIndex((each) => each.id === tab);
    set({ tab: tabs[(at + by + tabs.length) % tabs.length]?.id ?? "moves" });
    setChosen(new Map());
  };
  useKeys("Views of the plan", [
    { keys: "]", label: "Next tab", run: () => step(1), isMotion: true },
    { keys: "[", label: "Previous tab", run: () => step(-1), isMotion: true },
    { keys: "/", label: "Filter the files", run: () => document.getElementById("plan-filter")?.focus() },
    { keys: "v", label: "Targets, before, after", run: () => set({ tab: "", side: side === "target" ? "before" : side === "before" ? "after" : "" }) },
  ]);
  const current = TABS.find((each) => each.id === tab) ?? TABS[0];

  return (
    <div className={classes.plan}>
      <header className={classes.planHead}>
        <Link href="/organise" className={classes.back ?? ""} aria-label="Back to the plans" title="u">
          <IconArrowLeft size={18} stroke={1.6} />
        </Link>
        <h1 className={classes.planTitle} title={displayName(head.folder)}>
          <Name>{splitPath(head.folder).name}</Name>
          <span className={classes.planPath}>
            <WholePath path={splitPath(head.folder).folder} />
          </span>
        </h1>
        <span className={classes.planStanding} data-waits={state.waits}>
          {state.text}
        </span>
        <span className={classes.planMade}>
          made <Time at={head.created_at} /> by {head.made_by === "agent" ? "an agent" : "you"}
        </span>
        <span className={classes.spring} />
        <Button variant="subtle" aria-expanded={hasMeasures} onClick={() => setMeasures(!hasMeasures)}>
          {isPhone ? "Measures" : measuresLine(head.measures)}
        </Button>
      </header>
      {hasMeasures && (
        <Suspense fallback={<Loading rows={3} />}>
          <Measures head={head} />
        </Suspense>
      )}
      <Banners head={head} isBusy={isBusy} report={corrections.report} onForget={corrections.forget} />
      <div className={classes.tools}>
        <div className={classes.tabs} role="group" aria-label="Which files">
          {tabsOf(head).map((each) => (
            <button
              key={each.id}
              type="button"
              className={classes.tab}
              aria-pressed={each.id === tab}
              onClick={() => {
                set({ tab: each.id === "moves" ? "" : each.id });
                setChosen(new Map());
              }}
            >
              {each.label} <span className={classes.count}>{each.count.toLocaleString("en-US")}</span>
            </button>
          ))}
        </div>
        {tab === "moves" && filter === "" && !isPhone && (
          <div className={classes.sides} role="group" aria-label="Show">
            {SIDES.map((each) => (
              <button key={each.id} type="button" className={classes.side} aria-pressed={each.id === side} title="v" onClick={() => set({ side: each.id === "target" ? "" : each.id })}>
                {each.label}
              </button>
            ))}
          </div>
        )}
        <Filter value={filter} onChange={(value) => set({ filter: value })} />
      </div>
      {chosen.size > 0 && (
        <div className={classes.chosenBar} role="group" aria-label="Chosen files">
          <span>{quantity(chosen.size, "file")} chosen</span>
          {canCorrect && (
            <>
              <Button variant="default" title="m" onClick={() => setMoving([...chosen.values()])}>
                Move to…
              </Button>
              <Button variant="default" title="l" onClick={() => onDecide([...chosen.values()], null)}>
                Leave where they are
              </Button>
            </>
          )}
          <Button variant="subtle" color="gray" leftSection={<IconX size={14} />} onClick={() => setChosen(new Map())}>
            Choose none
          </Button>
        </div>
      )}
      <div className={classes.body}>
        <PlanTree
          key={`${base.view ?? ""} ${base.side ?? ""}`}
          head={head}
          folders={shown?.folders}
          base={base}
          isFlat={isFlat}
          isByTarget={isByTarget}
          label={isByTarget ? "Files by target" : isFlat ? current.label : side === "before" ? "Folder before" : "Folder after"}
          empty={filter ? "No file matches." : current.empty}
          isPhone={isPhone}
          isBusy={isBusy}
          canCorrect={canCorrect}
          canUndo={canUndo}
          staging={corrections.staging}
          marked={marked}
          chosen={chosen}
          onChoose={setChosen}
          onDecide={onDecide}
          onMoveTo={setMoving}
          onMoveFolder={(folder) => void onMoveFolder(folder)}
          onExplain={setExplained}
          onUndo={onUndo}
          onHashes={setHashes}
        />
        {canCorrect && isRoomy && <Shelves head={head} onDecide={onDecide} onMoveTo={setMoving} />}
      </div>
      <PlanBar
        head={head}
        work={work}
        progress={progress}
        isBusy={isBusy}
        canStop={isBusy && (progress !== null || isWorkedOn)}
        canAct={canAct}
        problem={isOpen ? problem : null}
        chosen={[...chosen.values()]}
        onUndo={onUndo}
        onShowStayed={() => set({ tab: "stayed" })}
      />
      {moving && <MoveTo rows={moving} shelves={head.shelves} onChoose={(folder) => onDecide(moving, folder)} onClose={() => setMoving(null)} />}
      {explained && <Explain planId={planId} row={explained} onClose={() => setExplained(null)} />}
    </div>
  );
}

/** Return the tabs that this plan has; nothing stays behind before it was carried out. */
function tabsOf(head: PlanHead) {
  const { counts } = head;
  const all = (counts["moves"] ?? 0) + (counts["uncertain"] ?? 0) + (counts["left_alone"] ?? 0) + (counts["skipped"] ?? 0);
  return TABS.map((each) => ({ ...each, count: each.id === "all" ? all : (counts[each.id] ?? 0) })).filter(
    (each) => each.id !== "stayed" || each.count > 0,
  );
}

/** The filter of the files; it holds when it is typed, after a moment. */
function Filter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  return (
    <TextInput
      id="plan-filter"
      size="xs"
      className={classes.filter ?? ""}
      aria-label="Filter the files"
      placeholder="Filter names, folders"
      maxLength={255}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        onChange(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur();
      }}
    />
  );
}
