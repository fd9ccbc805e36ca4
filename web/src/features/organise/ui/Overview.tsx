/** The plans of this machine: scans under way, what waits for the person, and what was done. */
import { Button } from "@mantine/core";
import { IconFolderSearch } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useRef, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { call, type DataOf } from "@/api/client";
import type { PlanLine } from "@/api/entries";
import { useEntry } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { splitPath } from "@/shared/names";
import { WholePath } from "@/shared/Place";
import { shortId } from "@/shared/reviews/words";
import { Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { quantity } from "@/shared/times";
import classes from "../organise.module.css";
import { movesOf, standing } from "../rules/words";
import { useProgress } from "./progress";
import { ScanProgress } from "./ScanView";

const PAGE = 100;

export function Overview() {
  const running = useEntry("plans", "running_scans", {});
  const plans = useInfiniteQuery({
    queryKey: ["plans", "all_plans", "pages"],
    queryFn: ({ pageParam, signal }) => call("all_plans", { limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) }, signal),
    initialPageParam: "",
    getNextPageParam: (last: DataOf<"all_plans">) => last.next_cursor ?? undefined,
  });
  const [, navigate] = useLocation();
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLDivElement>(null);
  const lines = plans.data?.pages.flatMap((page) => page.plans) ?? [];
  const busy = new Set(running.data?.busy_plans);
  const stands = (plan: PlanLine) => standing(plan.status, plan.moves, movesOf(plan.moves), busy.has(plan.plan_id));
  const waiting = lines.filter((plan) => stands(plan).waits || busy.has(plan.plan_id));
  const others = lines.filter((plan) => !waiting.includes(plan));
  const links = () => [...(list.current?.querySelectorAll<HTMLAnchorElement>("a[data-row]") ?? [])];
  const focus = (to: number) => {
    const rows = links();
    const index = Math.max(0, Math.min(rows.length - 1, to));
    rows[index]?.focus();
    setActive(index);
  };
  useKeys("Plans", [
    { keys: "n", label: "Choose a folder to tidy", run: () => navigate("/organise/new") },
    { keys: "j", label: "Next plan", run: () => focus(active + 1), isMotion: true },
    { keys: "k", label: "Previous plan", run: () => focus(active - 1), isMotion: true },
    { keys: "Enter", label: "Open the plan", run: () => links()[Math.max(0, active)]?.click(), isMotion: true },
  ]);
  const scans = running.data?.scans ?? [];
  const failed = running.data?.failed ?? [];
  const isEmpty = plans.isSuccess && lines.length + scans.length + failed.length === 0;

  return (
    <div className={classes.overview} ref={list}>
      <header className={classes.overviewHead}>
        <h1>Organise</h1>
        <Button component={Link} href="/organise/new" leftSection={<IconFolderSearch size={16} />} title="n">
          Choose a folder…
        </Button>
      </header>
      {plans.isError && <Fault error={plans.error} onRetry={() => void plans.refetch()} />}
      {plans.isPending && <Loading rows={5} label="Loading plans" />}
      {isEmpty && (
        <Empty title="No folder was tidied yet." command="holdfast organise scan ~/Downloads">
          A scan looks at a folder and proposes where its files belong. Nothing moves before you approve the plan, and all of it can be
          undone.
        </Empty>
      )}
      {scans.length + failed.length > 0 && (
        <Section title="Scans">
          {scans.map((scan) => (
            <RunningScan key={scan.plan_id} scan={scan} />
          ))}
          {failed.map((scan) => (
            <Link key={scan.plan_id} href={`/organise/${scan.plan_id}`} className={classes.planRow ?? ""} data-row>
              <PlanName folder={scan.folder} />
              <span className={classes.planState}>
                {scan.code}: <Words text={scan.message} />
              </span>
            </Link>
          ))}
        </Section>
      )}
      {waiting.length > 0 && (
        <Section title="Waits for you">
          {waiting.map((plan) => (
            <PlanRow key={plan.plan_id} plan={plan} state={stands(plan).text} />
          ))}
        </Section>
      )}
      {others.length > 0 && (
        <Section title="Earlier">
          {others.map((plan) => (
            <PlanRow key={plan.plan_id} plan={plan} state={stands(plan).text} />
          ))}
        </Section>
      )}
      {plans.hasNextPage && (
        <Button variant="subtle" disabled={plans.isFetchingNextPage} onClick={() => void plans.fetchNextPage()}>
          {quantity(lines.length, "plan")} are listed: list more
        </Button>
      )}
    </div>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={classes.section}>
      <h2>{title}</h2>
      <div className={classes.planRows}>{children}</div>
    </section>
  );
}

function PlanName({ folder }: { folder: string }) {
  const parts = splitPath(folder);
  return (
    <span className={classes.planName}>
      <strong>
        <Name>{parts.name}</Name>
      </strong>
      <span className={classes.dim}>
        <WholePath path={parts.folder} />
      </span>
    </span>
  );
}

function PlanRow({ plan, state }: { plan: PlanLine; state: string }) {
  return (
    <Link href={`/organise/${plan.plan_id}`} className={classes.planRow ?? ""} data-row>
      <PlanName folder={plan.folder} />
      <span className={classes.planMoves}>{quantity(movesOf(plan.moves), "move")}</span>
      <span className={classes.planState}>{state}</span>
      <code className={classes.planId}>{shortId(plan.plan_id)}</code>
      <span className={classes.planWhen}>
        <Time at={plan.created_at} />
      </span>
    </Link>
  );
}

function RunningScan({ scan }: { scan: DataOf<"running_scans">["scans"][number] }) {
  const progress = useProgress(scan.plan_id) ?? { ...scan, total: scan.total ?? null };
  return (
    <Link href={`/organise/${scan.plan_id}`} className={classes.planRow ?? ""} data-row>
      <PlanName folder={scan.folder} />
      <ScanProgress done={progress.done} total={progress.total} message={progress.message} />
    </Link>
  );
}
