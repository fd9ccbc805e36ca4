/** The call log: filters, rows that never move under the reader, and the newest behind a chip. */
import { Button } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { call } from "@/api/client";
import { useConnection, useMe } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { CopyButton, Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { formatDuration, quantity } from "@/shared/times";
import { VirtualList } from "@/shared/VirtualList";
import classes from "../activity.module.css";
import { commandOf, conditionsOf, countNew, SPANS } from "../rules/calls";
import { useCallPages, type CallFacts } from "./call_pages";
import { FilterSelect, FilterText, useFilters } from "./filters";

const POLL_MS = 3000;
const ROW_PX = 32;
const PHONE_ROW_PX = 52;

export function Calls() {
  const me = useMe();
  const isPhone = useMediaQuery("(max-width: 700px)");
  const isLive = useConnection() === "live";
  const client = useQueryClient();
  const [query, set] = useFilters();
  const filters = new URLSearchParams(query);
  filters.delete("call");
  const text = filters.toString();
  const [lookedAt, setLookedAt] = useState(() => Date.now());
  const conditions = useMemo(() => {
    const { kind, ...rest } = conditionsOf(new URLSearchParams(text), lookedAt);
    return me.kind === "person" && kind ? { ...rest, kind } : rest;
  }, [text, lookedAt, me.kind]);
  const key = ["calls", "list_calls", conditions];
  const pages = useCallPages(conditions, key);
  const newest = useQuery({
    queryKey: [...key, "newest"],
    queryFn: ({ signal }) => call("list_calls", { ...conditions, limit: 100 }, signal),
    refetchInterval: POLL_MS,
    enabled: isLive && pages.total !== undefined,
  });
  const count = pages.total ?? 0;
  const waiting = countNew(pages.at(0)?.position, newest.data?.calls ?? []);
  const active = pages.indexOf(query.get("call"));
  const openCall = pages.at(active);
  const showNew = () => {
    setLookedAt(Date.now());
    void client.resetQueries({ queryKey: key });
  };
  const choose = (at: number) => {
    const row = pages.at(Math.max(0, Math.min(count - 1, at)));
    if (row) set("call", row.id);
  };
  useKeys("Calls", [
    { keys: "j", label: "Next call", run: () => choose(active + 1), isMotion: true },
    { keys: "k", label: "Previous call", run: () => choose(active - 1), isMotion: true },
    { keys: "u", label: "Close the call", run: () => set("call", ""), isMotion: true, isOff: !openCall },
    { keys: "n", label: "Show new calls", run: showNew, isOff: waiting === 0 },
    { keys: "/", label: "Filter by tool", run: () => document.getElementById("calls-tool")?.focus() },
  ]);
  return (
    <div className={classes.calls}>
      <div className={classes.filters} role="group" aria-label="Filters">
        <FilterText name="tool" id="calls-tool" label="Tool" />
        <FilterText name="client" label="Program" />
        <FilterSelect
          name="status"
          label="How it ended"
          options={[
            { value: "", label: "however it ended" },
            { value: "ok", label: "ok" },
            { value: "error", label: "error" },
            { value: "cancelled", label: "cancelled" },
            { value: "input_required", label: "asked a person" },
          ]}
        />
        {me.kind === "person" && (
          <FilterSelect
            name="kind"
            label="Whose calls"
            fallback="agent"
            options={[
              { value: "agent", label: "of agents" },
              { value: "person", label: "your own" },
              { value: "all", label: "of everybody" },
            ]}
          />
        )}
        <FilterSelect name="since" label="Since" fallback="24h" options={SPANS.map(({ value, label }) => ({ value, label }))} />
        {me.kind === "person" && <CopyButton text={commandOf(query)} label="Copy the command that lists these" />}
      </div>
      {pages.error && <Fault error={pages.error} onRetry={pages.retry} />}
      {pages.total === undefined && !pages.error && <Loading rows={10} label="Loading calls" />}
      {pages.total === 0 && <NoCalls isRecording={pages.isRecording} waiting={waiting} onShow={showNew} />}
      {count > 0 && (
        <>
          <div className={classes.callsBar}>
            <p className={classes.total}>{quantity(count, "call")}</p>
            <NewChip count={waiting} onShow={showNew} />
          </div>
          <div className={classes.callHead} aria-hidden>
            <span>when</span>
            <span>tool</span>
            <span>program</span>
            <span>ended</span>
            <span>took</span>
          </div>
          <div className={classes.list}>
            <VirtualList
              count={count}
              rowHeight={isPhone ? PHONE_ROW_PX : ROW_PX}
              label="Calls"
              keyOf={String}
              activeIndex={active}
              onRange={pages.show}
              renderRow={(at) => {
                const each = pages.at(at);
                if (!each) return <span className={classes.callWaits} aria-label="Loading" />;
                return <CallRow facts={each} isActive={at === active} onChoose={() => set("call", at === active ? "" : each.id)} />;
              }}
            />
          </div>
        </>
      )}
      {openCall && <CallDetail facts={openCall} onClose={() => set("call", "")} />}
    </div>
  );
}

function NewChip({ count, onShow }: { count: number; onShow: () => void }) {
  return (
    <span role="status">
      {count > 0 && (
        <Button radius="xl" onClick={onShow}>
          {count >= 100 ? "100 or more" : count} new
        </Button>
      )}
    </span>
  );
}

function NoCalls({ isRecording, waiting, onShow }: { isRecording: boolean; waiting: number; onShow: () => void }) {
  if (!isRecording) {
    return (
      <Empty title="Calls are not recorded." command="holdfast config set observe.call_log.enabled true">
        The call log is switched off in the settings.
      </Empty>
    );
  }
  return (
    <>
      <NewChip count={waiting} onShow={onShow} />
      <Empty title="No call matches.">Each call of an agent stands here as soon as it ends. Choose a longer time or fewer filters to see more.</Empty>
    </>
  );
}

function CallRow({ facts, isActive, onChoose }: { facts: CallFacts; isActive: boolean; onChoose: () => void }) {
  return (
    <button type="button" className={classes.callRow} aria-expanded={isActive} data-status={facts.status} onClick={onChoose}>
      <span className={classes.callWhen}>
        <Time at={facts.at} />
      </span>
      <span className={classes.callTool}>{facts.tool}</span>
      <span className={classes.callClient}>
        <Name>{facts.client || (facts.kind === "person" ? "you" : "unknown")}</Name>
      </span>
      <span className={classes.callEnd}>{facts.code || facts.status.replace("input_required", "asked a person")}</span>
      <span className={classes.callTook}>{formatDuration(facts.duration_ms)}</span>
    </button>
  );
}

function CallDetail({ facts, onClose }: { facts: CallFacts; onClose: () => void }) {
  const rows: [string, string][] = [
    ["began", facts.at],
    ["id", facts.id],
    ["program", `${facts.client} ${facts.client_version}`.trim()],
    ["of", `${facts.identity} (${facts.kind})`],
    ["through", facts.door],
  ];
  return (
    <aside className={classes.callDetail} aria-label="The call">
      <div className={classes.detailHead}>
        <h2 className={classes.detailTitle}>{facts.tool}</h2>
        <span className={classes.spring} />
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
      </div>
      <dl className={classes.facts}>
        {rows.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>
              <Name>{value || "unknown"}</Name>
            </dd>
          </div>
        ))}
      </dl>
      <h3 className={classes.sub}>What is recorded of its arguments</h3>
      <dl className={classes.facts}>
        {Object.entries(facts.parameters).map(([name, value]) => (
          <div key={name}>
            <dt>
              <Name>{name}</Name>
            </dt>
            <dd>
              <Name>{typeof value === "string" ? value : JSON.stringify(value)}</Name>
            </dd>
          </div>
        ))}
        {Object.keys(facts.parameters).length === 0 && <div className={classes.dim}>nothing</div>}
      </dl>
    </aside>
  );
}
