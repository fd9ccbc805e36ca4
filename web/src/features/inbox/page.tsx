/** The inbox: what waits for the person, what waits for an agent, and what just happened. */
import { Button, TextInput } from "@mantine/core";
import { IconArrowRight, IconFilePencil, IconFilePlus, IconFolderPlus, IconFolders, IconRotate, IconTrash } from "@tabler/icons-react";
import { useMemo, useRef, useState, type ReactNode } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import type { ListedChange, PendingReview, PlanLine } from "@/api/entries";
import { useCanAct, useEntry } from "@/api/hooks";
import { useKeys, type KeyAction } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { displayName, splitPath } from "@/shared/names";
import { Place } from "@/shared/Place";
import { Counts } from "@/shared/reviews/Counts";
import { groupReviews, isNamedBy, waitsForYou, type ReviewGroup } from "@/shared/reviews/groups";
import { kindWord, makerOf, standing } from "@/shared/reviews/words";
import { Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { quantity } from "@/shared/times";
import { useUndo } from "@/shared/undo";
import classes from "./inbox.module.css";

const RECENT = 8;
/** With more rows than this, the list has a filter. */
const FEW = 10;

export default function InboxPage() {
  const pending = useEntry("reviews", "pending_reviews", {});
  const plans = useEntry("plans", "all_plans", {});
  const changes = useEntry("changes", "all_changes", { limit: RECENT });
  const [, navigate] = useLocation();
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLDivElement>(null);

  const [query, setQuery] = useSearchParams();
  const typed = query.get("q") ?? "";
  const everyReview: PendingReview[] = useMemo(() => pending.data?.reviews ?? [], [pending.data]);
  const everyPlan = useMemo(() => (plans.data?.plans ?? []).filter((plan) => plan.status === "CREATED"), [plans.data]);
  const isLong = typed !== "" || everyReview.length + everyPlan.length > FEW;
  const reviews = useMemo(() => everyReview.filter((review) => isNamedBy(typed, review.path, review.client)), [everyReview, typed]);
  const openPlans = useMemo(() => everyPlan.filter((plan) => isNamedBy(typed, plan.folder)), [everyPlan, typed]);
  const groups = useMemo(() => groupReviews(reviews.filter(waitsForYou)), [reviews]);
  const others = useMemo(() => reviews.filter((review) => !waitsForYou(review)), [reviews]);

  const links = () => [...(list.current?.querySelectorAll<HTMLAnchorElement>("a[data-row]") ?? [])];
  const focus = (to: number) => {
    const rows = links();
    const index = Math.max(0, Math.min(rows.length - 1, to));
    rows[index]?.focus();
    setActive(index);
  };
  const keys: KeyAction[] = [
    { keys: "j", label: "Next row", run: () => focus(active + 1), isMotion: true },
    { keys: "k", label: "Previous row", run: () => focus(active - 1), isMotion: true },
    { keys: "Enter", label: "Open the row", run: () => links()[Math.max(0, active)]?.click(), isMotion: true },
    { keys: "c", label: "Show closed reviews", run: () => navigate("/closed") },
    { keys: "/", label: "Filter what waits", run: () => document.getElementById("inbox-filter")?.focus(), isOff: !isLong },
  ];
  useKeys("Inbox", keys);

  return (
    <div className={classes.page} ref={list}>
      {isLong && (
        <TextInput
          id="inbox-filter"
          className={classes.filter ?? ""}
          aria-label="Filter what waits"
          placeholder="Filter files, folders, programs"
          value={typed}
          onChange={(event) => setQuery(event.currentTarget.value === "" ? {} : { q: event.currentTarget.value }, { replace: true })}
          onKeyDown={(event) => {
            if (event.key === "Escape" || event.key === "Enter") event.currentTarget.blur();
          }}
        />
      )}
      <Section title="Waits for you" count={groups.reduce((total, group) => total + group.reviews.length, openPlans.length)}>
        {pending.isError && <Fault error={pending.error} onRetry={() => void pending.refetch()} />}
        {plans.isError && <Fault error={plans.error} onRetry={() => void plans.refetch()} />}
        {(pending.isPending || plans.isPending) && <Loading rows={3} />}
        {typed !== "" && groups.length + openPlans.length === 0 && <Empty title="Nothing that waits matches." />}
        {typed === "" && pending.isSuccess && plans.isSuccess && groups.length + openPlans.length === 0 && (
          <Empty title="Nothing waits for you." command="holdfast install">
            When an agent proposes a change, it stands here until you decide. Connect an agent with this command.
          </Empty>
        )}
        {groups.map((group) => (
          <GroupRow key={group.id} group={group} />
        ))}
        {openPlans.map((plan) => (
          <PlanRow key={plan.plan_id} plan={plan} />
        ))}
      </Section>
      {others.length > 0 && (
        <Section title="Waits for the agent" count={others.length}>
          {others.map((review) => (
            <ReviewRow key={review.review_id} review={review} state={standing(review)} />
          ))}
        </Section>
      )}
      <Section title="Just happened" more={<Link href="/closed">Closed reviews</Link>}>
        {changes.isError && <Fault error={changes.error} onRetry={() => void changes.refetch()} />}
        {changes.isPending && <Loading rows={3} />}
        {changes.isSuccess && changes.data.changes.length === 0 && (
          <Empty title="Nothing was changed yet.">Each change of an agent stands here, with its undo.</Empty>
        )}
        {(changes.data?.changes ?? []).map((change) => (
          <ChangeRow key={change.change_id} change={change} />
        ))}
      </Section>
    </div>
  );
}

function Section({ title, count, more, children }: { title: string; count?: number; more?: ReactNode; children: ReactNode }) {
  return (
    <section className={classes.section}>
      <div className={classes.sectionHead}>
        <h2>
          {title}
          {count !== undefined && count > 0 && <span className={classes.sectionCount}>{count}</span>}
        </h2>
        {more}
      </div>
      <div className={classes.rows}>{children}</div>
    </section>
  );
}

function GroupRow({ group }: { group: ReviewGroup }) {
  const [first] = group.reviews;
  if (!first) return null;
  if (group.reviews.length === 1) return <ReviewRow review={first} />;
  const names = group.reviews.slice(0, 3).map((review) => splitPath(review.path).name);
  const added = sum(group.reviews, "added");
  const removed = sum(group.reviews, "removed");
  return (
    <Link href={`/group/${group.id}`} className={classes.row ?? ""} data-row>
      <IconFolders size={18} stroke={1.6} className={classes.icon} aria-hidden />
      <span className={classes.main}>
        <span className={classes.title}>{quantity(group.reviews.length, "file")}</span>
        <span className={classes.sub}>
          {names.map((name, at) => (
            <span key={at}>
              {at > 0 && ", "}
              <Name>{name}</Name>
            </span>
          ))}
          {group.reviews.length > names.length && ` and ${group.reviews.length - names.length} more`}
        </span>
      </span>
      <span className={classes.facts}>
        {added !== null && removed !== null && <Counts added={added} removed={removed} />}
      </span>
      <span className={classes.who}>{group.client && <Name>{group.client}</Name>}</span>
      <span className={classes.when}>
        <Time at={first.created_at} />
      </span>
      <span className={classes.left}>
        <Time at={firstToExpire(group.reviews)} until />
      </span>
    </Link>
  );
}

/** Return when the first of these reviews expires. */
function firstToExpire(reviews: readonly PendingReview[]): string {
  return reviews.map((review) => review.expires_at).sort()[0] ?? "";
}

function sum(reviews: readonly PendingReview[], field: "added" | "removed"): number | null {
  let total = 0;
  for (const review of reviews) {
    if (review[field] === undefined) return null;
    total += review[field];
  }
  return total;
}

function iconOf(review: PendingReview) {
  if (review.kind === "move") return IconArrowRight;
  if (review.kind === "delete") return IconTrash;
  if (review.kind === "create_directory") return IconFolderPlus;
  if (review.kind === "undo") return IconRotate;
  return review.is_new_file ? IconFilePlus : IconFilePencil;
}

function ReviewRow({ review, state }: { review: PendingReview; state?: string }) {
  const Icon = iconOf(review);
  const { folder, name } = splitPath(review.path);
  return (
    <Link href={`/reviews/${review.review_id}`} className={classes.row ?? ""} data-row>
      <Icon size={18} stroke={1.6} className={classes.icon} aria-hidden />
      <span className={classes.main}>
        <span className={classes.title}>
          {review.kind !== "edit" && <span className={classes.kind}>{kindWord(review.kind)} </span>}
          <Name>{name}</Name>
          {review.destination && (
            <>
              {" → "}
              <Name>{review.destination}</Name>
            </>
          )}
        </span>
        <span className={classes.sub}>
          <Place folder={folder} />
        </span>
      </span>
      <span className={classes.facts}>
        {state ?? (
          <>
            {review.is_new_file && <span>new</span>}
            {review.added !== undefined && review.removed !== undefined && review.kind === "edit" && (
              <Counts added={review.added} removed={review.removed} />
            )}
            {review.hunks !== undefined && review.hunks > 1 && <span>{quantity(review.hunks, "hunk")}</span>}
            {review.round > 1 && <span className={classes.round}>round {review.round}</span>}
            <Time at={review.expires_at} until />
          </>
        )}
      </span>
      <span className={classes.who}>{review.client && <Name>{review.client}</Name>}</span>
      <span className={classes.when}>
        <Time at={review.created_at} />
      </span>
      <span className={classes.left}>
        <Time at={review.expires_at} until />
      </span>
    </Link>
  );
}

function PlanRow({ plan }: { plan: PlanLine }) {
  const moves = Object.values(plan.moves).reduce((total, count) => total + count, 0);
  const head = useEntry("plans", "plan_rows", { plan_id: plan.plan_id, view: "by_folder", limit: 1 });
  const looks = head.data?.counts["uncertain"] ?? 0;
  return (
    <Link href={`/organise/${plan.plan_id}`} className={classes.row ?? ""} data-row>
      <IconFolders size={18} stroke={1.6} className={classes.icon} aria-hidden />
      <span className={classes.main}>
        <span className={classes.title}>
          <span className={classes.kind}>organise </span>
          <Name>{splitPath(plan.folder).name}</Name>
        </span>
        <span className={classes.sub}>
          <Place folder={splitPath(plan.folder).folder} />
        </span>
      </span>
      <span className={classes.facts}>
        <span>{quantity(moves, "move")}</span>
        {looks > 0 && <span>{looks.toLocaleString("en-US")} to look at</span>}
      </span>
      <span className={classes.who} />
      <span className={classes.when}>
        <Time at={plan.created_at} />
      </span>
      <span className={classes.left} />
    </Link>
  );
}

function ChangeRow({ change }: { change: ListedChange }) {
  const undo = useUndo();
  const canAct = useCanAct();
  const [isBusy, setBusy] = useState(false);
  return (
    <div className={classes.row} data-plain>
      <span className={classes.verb}>{kindWord(change.kind)}</span>
      <span className={classes.main}>
        <span className={classes.title}>
          <Name>{splitPath(change.path).name}</Name>
          {change.destination && (
            <>
              {" → "}
              <Name>{splitPath(change.destination).name}</Name>
            </>
          )}
          {change.entries > 1 && <span className={classes.kind}> and {quantity(change.entries - 1, "entry more", "entries more")}</span>}
        </span>
        <span className={classes.sub}>
          <Place folder={splitPath(change.path).folder} />
        </span>
      </span>
      <span className={classes.who}>{makerOf(change)}</span>
      <span className={classes.when}>
        <Time at={change.at} />
      </span>
      <span className={classes.action}>
        {change.undoable && (
          <Button
            variant="default"
            disabled={!canAct || isBusy}
            aria-label={`Undo the ${kindWord(change.kind)} of ${displayName(splitPath(change.path).name)}`}
            onClick={() => {
              setBusy(true);
              void undo(change.change_id).finally(() => setBusy(false));
            }}
          >
            Undo
          </Button>
        )}
      </span>
    </div>
  );
}
