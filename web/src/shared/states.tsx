/** What a list shows when it has nothing to show: it is empty, it loads, or it failed. */
import { ActionIcon, Button } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useState, type ReactNode } from "react";
import { asFault } from "@/api/fault";
import { Words } from "./LineText";
import classes from "./shared.module.css";

/** Say what would be here, and the command that makes it. */
export function Empty({ title, children, command }: { title: string; children?: ReactNode; command?: string }) {
  return (
    <div className={classes.state}>
      <h3 className={classes.stateTitle}>{title}</h3>
      {children && <p className={classes.stateText}>{children}</p>}
      {command && <Command>{command}</Command>}
    </div>
  );
}

/** Show a skeleton of rows after 150 ms. */
export function Loading({ rows = 6, label = "Loading" }: { rows?: number; label?: string }) {
  return (
    <div className={classes.skeleton} role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} className={classes.bone} style={{ width: `${[92, 74, 83, 61, 88, 70][at % 6]}%` }} />
      ))}
    </div>
  );
}

/** Show an error's code and message, and Retry when the same call may succeed later. */
export function Fault({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const fault = asFault(error);
  return (
    <div className={classes.fault} role="alert">
      <span className={classes.faultCode}>{fault.code}</span>
      <p className={classes.faultText}>
        <Words text={fault.message} />
      </p>
      {fault.retryable && onRetry && (
        <Button size="xs" variant="default" onClick={onRetry}>
          Retry
        </Button>
      )}
    </div>
  );
}

/** Show a command with a button that copies it. */
export function Command({ children }: { children: string }) {
  return (
    <span className={classes.command}>
      <code>{children}</code>
      <CopyButton text={children} label="Copy the command" />
    </span>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="sm"
      aria-label={isCopied ? "Copied" : label}
      title={label}
      onClick={() => void copy()}
    >
      {isCopied ? <IconCheck size={14} /> : <IconCopy size={14} />}
    </ActionIcon>
  );
}

/** Show the keys of an action: `g i`, `Ctrl K`. */
export function Keys({ children }: { children: string }) {
  return (
    <span aria-hidden>
      {children.split(" ").map((key, at) => (
        <kbd key={at} className={classes.kbd} style={{ marginInlineStart: at ? 3 : 0 }}>
          {key}
        </kbd>
      ))}
    </span>
  );
}
