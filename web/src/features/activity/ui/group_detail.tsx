/** One group of changes: its net effect, its changes one by one, and the undo of all or some, which is shown before it is done. */
import { Button, Checkbox } from "@mantine/core";
import { IconArrowLeft } from "@tabler/icons-react";
import { useMemo, useState } from "react";
import type { ListedChange } from "@/api/entries";
import { useCanAct, useEntry } from "@/api/hooks";
import { EffectList } from "@/shared/changes/EffectList";
import { useKeys } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { displayName, splitPath } from "@/shared/names";
import { Place } from "@/shared/Place";
import { kindWord, shortId } from "@/shared/reviews/words";
import { CopyButton, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { formatSpan, quantity } from "@/shared/times";
import classes from "../activity.module.css";
import { allOf, undoable, type ChangeGroup } from "../rules/groups";
import { Maker } from "./changes";
import { UndoPreview } from "./undo_preview";

const MANY = 200;

export function GroupDetail({ group, onBack }: { group: ChangeGroup; onBack: () => void }) {
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [previewed, setPreviewed] = useState<readonly string[] | null>(null);
  const canAct = useCanAct();
  const ids = useMemo(() => group.changes.map((change) => change.change_id), [group]);
  const all = useMemo(() => allOf(group), [group]);
  const net = useEntry("changes", "net_changes", { change_ids: ids });
  const some = all.filter((change) => picked.has(change.change_id)).length > 0 ? undoable(group).filter((change) => picked.has(change.change_id)) : [];
  const wanted = some.length > 0 ? some : all;
  const preview = () => setPreviewed(wanted.map((change) => change.change_id));
  useKeys("Group", [{ keys: "x", label: "Show what undoing would do", run: preview, isOff: !canAct || wanted.length === 0 }]);
  const [newest, oldest] = [group.changes[0], group.changes.at(-1)];
  const span = newest && oldest ? (Date.parse(newest.at) - Date.parse(oldest.at)) / 1000 : 0;

  if (previewed) {
    return (
      <UndoPreview
        ids={previewed}
        onClose={() => {
          setPreviewed(null);
          setPicked(new Set());
        }}
      />
    );
  }
  return (
    <div className={classes.detail}>
      <div className={classes.detailHead}>
        <Button variant="subtle" color="gray" className={classes.back ?? ""} leftSection={<IconArrowLeft size={14} />} onClick={onBack}>
          Changes
        </Button>
        <h2 className={classes.detailTitle}>
          <Maker group={group} />: {quantity(group.changes.length, "change")}
        </h2>
        <span className={classes.detailWhen}>
          {newest && <Time at={newest.at} />}
          {span >= 60 && `, over ${formatSpan(span)}`}
        </span>
        <span className={classes.spring} />
        <Button variant="default" disabled={!canAct || wanted.length === 0} onClick={preview}>
          {some.length > 0 ? `Undo ${some.length} chosen…` : all.length === 1 ? "Undo…" : `Undo all ${all.length}…`}
        </Button>
      </div>
      {all.length === 0 && <p className={classes.hint}>Nothing of this can be undone any more: it is undone already, or its earlier bytes are no longer kept.</p>}
      <h3 className={classes.sub}>What became of the files</h3>
      {net.isError && <Fault error={net.error} onRetry={() => void net.refetch()} />}
      {net.isPending && <Loading rows={5} label="Comparing" />}
      {net.isSuccess && net.data.files.length === 0 && <p className={classes.hint}>Every file is as it was before.</p>}
      {net.isSuccess && net.data.files.length > 0 && <EffectList files={net.data.files} label="Files" />}
      <h3 className={classes.sub}>One by one</h3>
      <ChangeRows group={group} picked={picked} onPick={setPicked} />
    </div>
  );
}

function ChangeRows(props: { group: ChangeGroup; picked: ReadonlySet<string>; onPick: (picked: ReadonlySet<string>) => void }) {
  const { group, picked, onPick } = props;
  const [shown, setShown] = useState(MANY);
  const toggle = (id: string) => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    onPick(next);
  };
  return (
    <ul className={classes.changes} aria-label="Changes">
      {group.changes.slice(0, shown).map((change) => (
        <ChangeRow key={change.change_id} change={change} isPicked={picked.has(change.change_id)} onToggle={() => toggle(change.change_id)} />
      ))}
      {group.changes.length > shown && (
        <li>
          <Button variant="subtle" onClick={() => setShown(shown + 1000)}>
            {shown} of {group.changes.length} are listed: list more
          </Button>
        </li>
      )}
    </ul>
  );
}

function ChangeRow({ change, isPicked, onToggle }: { change: ListedChange; isPicked: boolean; onToggle: () => void }) {
  const canUndo = change.undoable && change.status !== "UNDONE";
  const { folder, name } = splitPath(change.path);
  return (
    <li className={classes.change}>
      <Checkbox
        size="xs"
        checked={isPicked}
        disabled={!canUndo}
        onChange={onToggle}
        aria-label={`Choose the ${kindWord(change.kind)} of ${displayName(name)}`}
      />
      <span className={classes.changeKind}>{kindWord(change.kind)}</span>
      <span className={classes.changeName}>
        <Name>{name}</Name>
        {change.destination && (
          <>
            {" → "}
            <Name>{splitPath(change.destination).folder === folder ? splitPath(change.destination).name : change.destination}</Name>
          </>
        )}
        {change.entries > 1 && <span className={classes.dim}> and {quantity(change.entries - 1, "entry more", "entries more")}</span>}
        <span className={classes.changeFolder}>
          <Place folder={folder} />
        </span>
      </span>
      <span className={classes.changeState}>{stateOf(change)}</span>
      <span className={classes.changeId}>
        <code>{shortId(change.change_id)}</code>
        <CopyButton text={`holdfast undo ${shortId(change.change_id)}`} label="Copy the command that undoes it" />
      </span>
      <span className={classes.changeWhen}>
        <Time at={change.at} />
      </span>
    </li>
  );
}

function stateOf(change: ListedChange): string {
  if (change.status === "UNDONE") return "undone";
  if (change.status === "FAILED") return "not done";
  if (change.status === "RUNNING") return "under way";
  return change.undoable ? "" : "cannot be undone";
}
