/** Changes, grouped by program and time: each group with its net effect, and the way back for all of it or some. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import { call, type ArgumentsOf, type DataOf } from "@/api/client";
import { useKeys } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { kindWord } from "@/shared/reviews/words";
import { Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { quantity } from "@/shared/times";
import { VirtualList } from "@/shared/VirtualList";
import classes from "../activity.module.css";
import { groupChanges, summaryOf, type ChangeGroup } from "../rules/groups";
import { SPANS } from "../rules/calls";
import { FilterSelect, FilterText, useFilters } from "./filters";
import { GroupDetail } from "./group_detail";

const PAGE = 200;
const ROW_PX = 56;
const KINDS = ["edit", "write", "append", "move", "delete", "mkdir", "review", "organise", "undo"] as const;

type Arguments = ArgumentsOf<"all_changes">;

/** Return the arguments of the address; the time is that of the first look, so that a page does not slide. */
function useArguments(): Arguments {
  const [query] = useFilters();
  const text = query.toString();
  return useMemo(() => {
    const conditions = new URLSearchParams(text);
    const span = SPANS.find((each) => each.value === conditions.get("since"));
    const kind = KINDS.find((each) => each === conditions.get("kind"));
    return {
      limit: PAGE,
      ...(conditions.get("client") ? { client: conditions.get("client") ?? "" } : {}),
      ...(conditions.get("path") ? { path: conditions.get("path") ?? "" } : {}),
      ...(kind ? { kinds: [kind] } : {}),
      ...(span?.ms ? { since: new Date(Date.now() - span.ms).toISOString() } : {}),
    };
  }, [text]);
}

export function Changes() {
  const [query, set] = useFilters();
  const filters = new URLSearchParams(query);
  filters.delete("group");
  const args = useArguments();
  const pages = useInfiniteQuery({
    // Without the open group: choosing asks nothing anew.
    queryKey: ["changes", "all_changes", "pages", filters.toString()],
    queryFn: ({ pageParam, signal }) => call("all_changes", { ...args, ...(pageParam ? { older_than: pageParam } : {}) }, signal),
    initialPageParam: "",
    getNextPageParam: (last: DataOf<"all_changes">) => (last.has_more ? last.changes.at(-1)?.change_id : undefined),
  });
  const changes = useMemo(() => pages.data?.pages.flatMap((page) => page.changes) ?? [], [pages.data]);
  const groups = useMemo(() => groupChanges(changes), [changes]);
  const id = query.get("group");
  const openGroup = groups.find((group) => group.changes.some((change) => change.change_id === id));
  const active = openGroup ? groups.indexOf(openGroup) : -1;
  const keyOf = useCallback((at: number) => groups[at]?.id ?? String(at), [groups]);
  const list = useRef<HTMLDivElement>(null);

  const choose = (at: number) => {
    const group = groups[Math.max(0, Math.min(groups.length - 1, at))];
    if (group) set("group", group.id);
  };
  useKeys("Changes", [
    { keys: "j", label: "Next group", run: () => choose(active + 1), isMotion: true },
    { keys: "k", label: "Previous group", run: () => choose(active - 1), isMotion: true },
    { keys: "u", label: "Back to the list", run: () => set("group", ""), isMotion: true, isOff: !openGroup },
    { keys: "/", label: "Filter by path", run: () => document.getElementById("changes-path")?.focus() },
  ]);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = pages;
  const onRange = useCallback(
    (_first: number, last: number) => {
      if (last >= groups.length - 10 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
    },
    [groups.length, hasNextPage, isFetchingNextPage, fetchNextPage],
  );

  return (
    <div className={classes.columns} data-step={openGroup ? "detail" : "list"}>
      <section className={classes.listPane} aria-label="Groups of changes">
        <div className={classes.filters} role="group" aria-label="Filters">
          <FilterText name="path" id="changes-path" label="Path, such as *.md" />
          <FilterText name="client" label="Program, or you" />
          <FilterSelect name="kind" label="Kind" options={[{ value: "", label: "every kind" }, ...KINDS.map((kind) => ({ value: kind, label: kindWord(kind) }))]} />
          <FilterSelect name="since" label="Since" fallback="all" options={SPANS.map(({ value, label }) => ({ value, label }))} />
        </div>
        {pages.isError && <Fault error={pages.error} onRetry={() => void pages.refetch()} />}
        {pages.isPending && <Loading rows={8} label="Loading changes" />}
        {pages.isSuccess && groups.length === 0 && <NoChanges isFiltered={filters.size > 0} />}
        {groups.length > 0 && (
          <>
            <p className={classes.total}>
              {quantity(changes.length, "change")} in {quantity(groups.length, "group")}
              {pages.hasNextPage ? "; older ones as you scroll" : ""}
            </p>
            <div className={classes.list} ref={list}>
              <VirtualList
                count={groups.length}
                rowHeight={ROW_PX}
                label="Groups of changes"
                keyOf={keyOf}
                activeIndex={active}
                onRange={onRange}
                renderRow={(at) => {
                  const group = groups[at];
                  return group ? <GroupRow group={group} isActive={at === active} onChoose={() => choose(at)} /> : null;
                }}
              />
            </div>
          </>
        )}
      </section>
      <section className={classes.detailPane} aria-label="The group">
        {openGroup ? (
          <GroupDetail key={openGroup.id} group={openGroup} onBack={() => set("group", "")} />
        ) : (
          groups.length > 0 && (
            <Empty title="Choose a group.">It shows what became of each file, and undoes all of it or some.</Empty>
          )
        )}
      </section>
    </div>
  );
}

function NoChanges({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No change matches.">Take a filter away to see more.</Empty>;
  return (
    <Empty title="Nothing was changed yet." command="holdfast install">
      Each change of an agent stands here, with its diff and its undo. Connect an agent with this command.
    </Empty>
  );
}

/** Show who made a group's changes. */
export function Maker({ group }: { group: Pick<ChangeGroup, "client" | "isYours"> }) {
  if (group.isYours) return <>you</>;
  return group.client ? <Name>{group.client}</Name> : <>an agent</>;
}

function GroupRow({ group, isActive, onChoose }: { group: ChangeGroup; isActive: boolean; onChoose: () => void }) {
  const [newest] = group.changes;
  return (
    <button type="button" className={classes.groupRow} aria-current={isActive ? "true" : undefined} onClick={onChoose}>
      <span className={classes.groupMaker}>
        <Maker group={group} />
      </span>
      <span className={classes.groupWhen}>{newest && <Time at={newest.at} />}</span>
      <span className={classes.groupSum}>{summaryOf(group, kindWord)}</span>
    </button>
  );
}
