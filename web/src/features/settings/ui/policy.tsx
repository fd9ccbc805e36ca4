/** The policy: rules that say what agents may do with which paths. They are changed here, previewed, tried, and saved as a whole. */
import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { call } from "@/api/client";
import { asFault } from "@/api/fault";
import { useConnection, useEntry } from "@/api/hooks";
import { Name } from "@/shared/Name";
import { Empty, Fault, Loading } from "@/shared/states";
import { quantity } from "@/shared/times";
import { showFault, showToast, showUndo } from "@/shared/toasts";
import { areSame, faultsOf, fullRule, moved, NEW_RULE, type PolicyAnswer, type Rule } from "../rules/policy";
import classes from "../settings.module.css";
import { RuleRow } from "./rule_row";
import { TryPath } from "./try_path";

export function Policy() {
  const read = useEntry("tools", "policy_rules", {}, { staleTime: 0 });
  if (read.isError) return <Fault error={read.error} onRetry={() => void read.refetch()} />;
  if (read.isPending) return <Loading rows={6} label="Loading the rules" />;
  return (
    <>
      <Rules read={read.data} />
      <TryPath />
    </>
  );
}

/** A list that is being changed: the rules as they were read stay beside it, so that a newer file is noticed. */
interface Draft {
  hash: string | undefined;
  before: readonly Rule[];
  rules: readonly Rule[];
}

function draftOf(read: PolicyAnswer): Draft {
  const rules = read.rules.map(fullRule);
  return { hash: read.hash, before: rules, rules };
}

function Rules({ read }: { read: PolicyAnswer }) {
  const client = useQueryClient();
  const isLive = useConnection() === "live";
  const [draft, setDraft] = useState<Draft>(() => draftOf(read));
  const [open, setOpen] = useState<number | null>(null);
  const [isBusy, setBusy] = useState(false);
  const add = useRef<HTMLButtonElement>(null);
  const isChanged = !areSame(draft.rules, draft.before);
  const isNewer = read.hash !== draft.hash;
  if (isNewer && !isChanged) setDraft(draftOf(read));
  const hasFaults = draft.rules.some((rule) => Object.keys(faultsOf(rule)).length > 0);
  const discard = () => {
    setDraft(draftOf(read));
    setOpen(null);
  };
  const put = (rules: readonly Rule[]) => setDraft({ ...draft, rules });
  const refresh = () => client.invalidateQueries({ queryKey: ["tools"] });

  const save = async (hash: string, rules: readonly Rule[], undoTo: readonly Rule[] | null) => {
    setBusy(true);
    try {
      const done = await call("change_policy", { expected_hash: hash, rules: rules.map((rule) => ({ ...rule })) });
      const written = done.rules.map(fullRule);
      client.setQueryData<PolicyAnswer>(["tools", "policy_rules", {}], (old) => old && { ...old, hash: done.hash, rules: done.rules });
      setDraft({ hash: done.hash, before: written, rules: written });
      setOpen(null);
      const said = `${quantity(written.length, "rule")} in force.`;
      if (undoTo === null) showToast(said);
      else showUndo(said, "Put the rules back as they were", () => save(done.hash, undoTo, null));
    } catch (error) {
      if (asFault(error).code === "CONFLICT") showFault(error, "The settings file is not as it was");
      else showFault(error, "The rules were not saved");
    }
    setBusy(false);
    await refresh();
  };

  return (
    <section className={classes.section} aria-label="Rules">
      <p className={classes.hint}>
        What agents may do with which paths. The strictest rule that matches wins; no agent sees or changes the rules. They are <code>policy.rules</code> in{" "}
        <Name isPath>{read.path}</Name>; what is saved here is in force at once, and comments in the file stay.
      </p>
      {read.problem && (
        <div className={classes.notice} role="alert">
          <p>The settings file cannot be used, so the rules in force stay as they were. Mend it, then look again.</p>
          <pre>{read.problem}</pre>
        </div>
      )}
      {isNewer && isChanged && (
        <div className={classes.notice} role="alert">
          <p>The settings file has changed since you began. Your changes are not saved.</p>
          <Button variant="default" onClick={discard}>
            Show the rules of the file
          </Button>
        </div>
      )}
      {draft.rules.length === 0 ? (
        <Empty title="No rules: agents may change everything in their directories.">A rule holds for a directory, a pattern and a client, as narrow as you like.</Empty>
      ) : (
        <ol className={classes.rules}>
          {draft.rules.map((rule, at) => (
            <RuleRow
              key={at}
              number={at + 1}
              count={draft.rules.length}
              rule={rule}
              isOpen={open === at}
              onOpen={() => setOpen(open === at ? null : at)}
              onChange={(changed) => put(draft.rules.with(at, changed))}
              onMove={(by) => {
                put(moved(draft.rules, at, by));
                if (open === at) setOpen(at + by);
              }}
              onRemove={() => {
                put(draft.rules.toSpliced(at, 1));
                setOpen(null);
                add.current?.focus();
              }}
            />
          ))}
        </ol>
      )}
      <div className={classes.bar}>
        <Button
          ref={add}
          variant="default"
          leftSection={<IconPlus size={14} />}
          onClick={() => {
            put([...draft.rules, NEW_RULE]);
            setOpen(draft.rules.length);
          }}
        >
          Add a rule
        </Button>
        <span className={classes.spring} />
        {isChanged && <span className={classes.hint}>Not saved.</span>}
        <Button variant="default" disabled={!isChanged || isBusy} onClick={discard}>
          Discard
        </Button>
        <Button disabled={!isChanged || isBusy || !isLive || hasFaults || isNewer || draft.hash === undefined} onClick={() => draft.hash !== undefined && void save(draft.hash, draft.rules, draft.before)}>
          Save the rules
        </Button>
      </div>
    </section>
  );
}
