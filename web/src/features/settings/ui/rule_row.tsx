/** One rule of the policy: what it says, and, when it is open, its members with a preview of what it is about. */
import { ActionIcon, Autocomplete, Button, NativeSelect, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconChevronDown, IconChevronUp, IconTrash } from "@tabler/icons-react";
import { useEntry, useMe } from "@/api/hooks";
import { Name } from "@/shared/Name";
import { quantity } from "@/shared/times";
import { asFault } from "@/api/fault";
import { ACCESS, faultsOf, scopeOf, type Access, type Rule } from "../rules/policy";
import classes from "../settings.module.css";

export interface RuleRowProps {
  number: number;
  count: number;
  rule: Rule;
  isOpen: boolean;
  onOpen: () => void;
  onChange: (rule: Rule) => void;
  onMove: (by: number) => void;
  onRemove: () => void;
}

export function RuleRow(props: RuleRowProps) {
  const { number, count, rule, isOpen, onOpen, onMove, onRemove } = props;
  return (
    <li className={classes.rule}>
      <div className={classes.ruleLine}>
        <span className={classes.ruleNumber}>{number}</span>
        <button type="button" className={classes.ruleText} aria-expanded={isOpen} onClick={onOpen}>
          <span className={classes.access}>{rule.access}</span> <Name>{scopeOf(rule)}</Name>
        </button>
        <span className={classes.ruleTools}>
          <ActionIcon variant="subtle" color="gray" aria-label={`Move rule ${number} up`} disabled={number === 1} onClick={() => onMove(-1)}>
            <IconChevronUp size={16} />
          </ActionIcon>
          <ActionIcon variant="subtle" color="gray" aria-label={`Move rule ${number} down`} disabled={number === count} onClick={() => onMove(1)}>
            <IconChevronDown size={16} />
          </ActionIcon>
          <ActionIcon variant="subtle" color="gray" aria-label={`Remove rule ${number}`} onClick={onRemove}>
            <IconTrash size={16} />
          </ActionIcon>
        </span>
      </div>
      {isOpen && <RuleForm {...props} />}
    </li>
  );
}

function RuleForm({ rule, onChange, onOpen }: RuleRowProps) {
  const me = useMe();
  const faults = faultsOf(rule);
  return (
    <div className={classes.ruleForm}>
      <NativeSelect
        label="Access"
        description={ACCESS.find((each) => each.value === rule.access)?.says}
        data={ACCESS.map(({ value, label }) => ({ value, label }))}
        value={rule.access}
        onChange={(event) => onChange({ ...rule, access: event.currentTarget.value as Access })}
      />
      <Autocomplete
        label="Directory"
        description="Empty: each allowed one"
        placeholder="each allowed directory"
        data={[...me.roots]}
        value={rule.root}
        error={faults.root}
        onChange={(root) => onChange({ ...rule, root })}
      />
      <TextInput
        label="Pattern"
        description="Of paths beneath it; without / at any depth. Empty: all of it"
        placeholder="src/**"
        spellCheck={false}
        value={rule.glob}
        error={faults.glob}
        onChange={(event) => onChange({ ...rule, glob: event.currentTarget.value })}
      />
      <TextInput
        label="Client"
        description="Pattern of the name that an MCP client declares. Empty: every one"
        placeholder="claude-*"
        spellCheck={false}
        value={rule.client}
        onChange={(event) => onChange({ ...rule, client: event.currentTarget.value })}
      />
      <Preview rule={rule} isUsable={Object.keys(faults).length === 0} />
      <Button variant="default" className={classes.ruleDone ?? ""} onClick={onOpen}>
        Done
      </Button>
    </div>
  );
}

/** Say how many files a rule is about, half a second after it was typed. */
function Preview({ rule, isUsable }: { rule: Rule; isUsable: boolean }) {
  const [settled] = useDebouncedValue({ root: rule.root, glob: rule.glob }, 500);
  const preview = useEntry("files", "preview_rule", settled, { enabled: isUsable, placeholderData: (last) => last });
  const { data } = preview;
  return (
    <div className={classes.preview} role="status">
      {!isUsable ? "" : preview.isError ? asFault(preview.error).message : !data ? "Counting files…" : null}
      {isUsable && data && !preview.isError && (
        <>
          <p>
            About {data.is_complete ? "" : "at least "}
            {quantity(data.files, "file")} of {quantity(data.of, "file")} in {quantity(data.directories.length, "directory", "directories")} that Holdfast knows.
          </p>
          {data.examples.length > 0 && (
            <ul>
              {data.examples.map((path) => (
                <li key={path}>
                  <Name isPath>{path}</Name>
                </li>
              ))}
              {data.files > data.examples.length && <li>and {quantity(data.files - data.examples.length, "more", "more")}</li>}
            </ul>
          )}
        </>
      )}
    </div>
  );
}
