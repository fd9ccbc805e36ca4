/** Tools: every tool that can be called here, each with its form, its answer and its declarations. */
import { NativeSelect, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { Link, useLocation, useParams, useSearchParams } from "wouter";
import { getJson, request } from "@/api/client";
import { useMe } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { CopyButton, Empty, Fault, Loading } from "@/shared/states";
import { groupTools, type ToolFacts, type ToolGroup } from "./rules/tools";
import classes from "./tools.module.css";
import { PlainText } from "./ui/data_view";
import { ToolPanel } from "./ui/tool_panel";

const WHOSE = [
  { value: "agent", label: "Agents' tools" },
  { value: "person", label: "Yours alone" },
  { value: "all", label: "All" },
];

export default function ToolsPage() {
  const { name } = useParams<{ name?: string }>();
  const [query] = useSearchParams();
  const [, navigate] = useLocation();
  const filter = useRef<HTMLInputElement>(null);
  const tools = useQuery({ queryKey: ["tools", "list"], queryFn: ({ signal }) => getJson<{ tools: ToolFacts[] }>("/api/tools", signal) });
  const typed = query.get("q") ?? "";
  const whose = query.get("whose") ?? "agent";
  const groups = useMemo(() => groupTools(tools.data?.tools ?? [], typed, whose), [tools.data, typed, whose]);
  const rows = groups.flatMap((group) => group.tools);
  const tool = tools.data?.tools.find((each) => each.name === name);
  const search = query.size > 0 ? `?${query.toString()}` : "";
  const go = (step: number) => {
    const at = rows.findIndex((row) => row.name === name);
    const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) navigate(`/tools/${next.name}${search}`);
  };
  useKeys("Tools", [
    { keys: "j", label: "Next tool", run: () => go(1), isMotion: true },
    { keys: "k", label: "Previous tool", run: () => go(-1), isMotion: true },
    { keys: "/", label: "Filter tools", run: () => filter.current?.focus() },
    { keys: "u", label: "Back to the list of tools", run: () => navigate(`/tools${search}`) },
  ]);
  if (tools.isError) {
    return (
      <div className={classes.message}>
        <Fault error={tools.error} onRetry={() => void tools.refetch()} />
      </div>
    );
  }
  if (tools.isPending) {
    return (
      <div className={classes.message}>
        <Loading rows={12} label="Loading tools" />
      </div>
    );
  }
  return (
    <div className={classes.page} data-step={name ? "tool" : "list"}>
      <div className={classes.listPane}>
        <Filters filter={filter} onEnter={() => go(0)} />
        <ToolList groups={groups} current={name} search={search} />
      </div>
      {tool ? <ToolPanel key={tool.name} tool={tool} /> : <Start isUnknown={name !== undefined} />}
    </div>
  );
}

function Filters({ filter, onEnter }: { filter: React.RefObject<HTMLInputElement | null>; onEnter: () => void }) {
  const me = useMe();
  const [query, setQuery] = useSearchParams();
  const set = (name: string, value: string, fallback: string) =>
    setQuery(
      (old) => {
        const next = new URLSearchParams(old);
        if (value === fallback) next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return (
    <div className={classes.filters}>
      <TextInput
        ref={filter}
        size="xs"
        aria-label="Filter tools"
        placeholder="Filter"
        value={query.get("q") ?? ""}
        onChange={(event) => set("q", event.currentTarget.value, "")}
        onKeyDown={(event) => {
          if (event.key === "Enter") onEnter();
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {me.kind === "person" && (
        <NativeSelect size="xs" aria-label="Whose tools" data={WHOSE} value={query.get("whose") ?? "agent"} onChange={(event) => set("whose", event.currentTarget.value, "agent")} />
      )}
    </div>
  );
}

function ToolList({ groups, current, search }: { groups: readonly ToolGroup[]; current: string | undefined; search: string }) {
  if (groups.length === 0) {
    return (
      <div className={classes.none}>
        <Empty title="No tool matches.">Every word must stand in a tool&apos;s name, title or group.</Empty>
      </div>
    );
  }
  return (
    <nav className={classes.list} aria-label="List of tools">
      {groups.map((group) => (
        <section key={group.title} aria-label={group.title}>
          <h2 className={classes.groupTitle}>
            {group.title} <span className={classes.count}>{group.tools.length}</span>
          </h2>
          <ul>
            {group.tools.map((tool) => (
              <li key={tool.name}>
                <Link
                  href={`/tools/${tool.name}${search}`}
                  className={classes.tool ?? ""}
                  title={tool.title}
                  aria-current={tool.name === current ? "page" : undefined}
                  ref={tool.name === current ? scrollHere : undefined}
                >
                  {tool.name}
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function scrollHere(element: HTMLAnchorElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

/** What stands beside the list before a tool is chosen: what a model should know of this server. */
function Start({ isUnknown }: { isUnknown: boolean }) {
  const workspace = useQuery({
    queryKey: ["tools", "workspace"],
    queryFn: async ({ signal }) => (await request("/api/workspace", { signal })).text(),
  });
  return (
    <div className={classes.start}>
      {isUnknown && <Empty title="There is no such tool.">It may be switched off in the settings, or be of another version.</Empty>}
      <div className={classes.startHead}>
        <h1 className={classes.startTitle}>Workspace description</h1>
        {workspace.isSuccess && <CopyButton text={workspace.data} label="Copy the workspace description" />}
      </div>
      <p className={classes.hint}>What a model should know of this server before its first call: put it into its instructions.</p>
      {workspace.isError && <Fault error={workspace.error} onRetry={() => void workspace.refetch()} />}
      {workspace.isPending && <Loading rows={8} label="Loading the description" />}
      {workspace.isSuccess && <PlainText text={workspace.data} label="Workspace description" />}
    </div>
  );
}
