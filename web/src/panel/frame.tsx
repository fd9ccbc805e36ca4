/** What both panels are made of: the link to the host, the token that came beside the answer, buttons, and questions. */
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import "@/app/base.css";
import classes from "./panel.module.css";
import { Bridge, ToolFault, type HostContext, type ToolResult } from "./bridge";

const FOR_PANEL = "holdfast/panel";

export interface Session {
  bridge: Bridge;
  /** The arguments of the call that this panel belongs to. */
  input: Record<string, unknown>;
  /** Its answer, none while it runs. */
  result: ToolResult | null;
  cancelled: string | null;
  hasHost: boolean;
}

/** Connect with the host, and return what came from it so far. */
export function useSession(): Session {
  const [input, setInput] = useState<Record<string, unknown>>({});
  const [result, setResult] = useState<ToolResult | null>(null);
  const [cancelled, setCancelled] = useState<string | null>(null);
  const [hasHost, setHasHost] = useState(false);
  const bridge = useMemo(
    () => new Bridge(window.parent, { onInput: setInput, onResult: setResult, onCancelled: setCancelled, onContext: applyTheme }),
    [],
  );
  useEffect(() => {
    void bridge.connect().then(
      () => setHasHost(true),
      () => undefined,
    );
  }, [bridge]);
  return { bridge, input, result, cancelled, hasHost };
}

/** Return the token that came beside an answer; a host that drops it leaves the panel with reading. */
export function tokenOf(result: ToolResult): string | undefined {
  const forPanel = result._meta?.[FOR_PANEL];
  const token = typeof forPanel === "object" && forPanel !== null ? (forPanel as { token?: unknown }).token : undefined;
  return typeof token === "string" ? token : undefined;
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function asToolFault(error: unknown): ToolFault {
  return error instanceof ToolFault ? error : new ToolFault("FAILED", String(error));
}

function applyTheme(context: HostContext): void {
  const isDark = context.theme ? context.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset["mantineColorScheme"] = isDark ? "dark" : "light";
}

export function start(panel: ReactNode): void {
  applyTheme({});
  const root = document.getElementById("root");
  if (!root) throw new Error("The page has no element #root");
  createRoot(root).render(panel);
}

/** Show a line in place of the panel: that it waits, or why it shows nothing. */
export function Message({ children }: { children: ReactNode }) {
  return (
    <p className={classes.message} role="status">
      {children}
    </p>
  );
}

interface ButtonProps {
  children: ReactNode;
  isMain?: boolean;
  isOff?: boolean;
  title?: string;
  onClick: () => void;
}

export function Button({ children, isMain = false, isOff = false, title, onClick }: ButtonProps) {
  return (
    <button type="button" className={classes.button} data-main={isMain || undefined} disabled={isOff} title={title} onClick={onClick}>
      {children}
    </button>
  );
}

/** Send the reader to the console, by the host where it can, else with the address and the command. */
export function ConsoleLink({ bridge, url, command }: { bridge: Bridge; url: string | null | undefined; command: string }) {
  const [isRefused, setRefused] = useState(false);
  if (!url || !bridge.canOpenLinks || isRefused) return <code className={classes.command}>{command}</code>;
  return <Button onClick={() => void bridge.openLink(url).then((hasOpened) => setRefused(!hasOpened))}>Open in the console</Button>;
}

interface QuestionProps {
  text: string;
  yes: string;
  isBusy: boolean;
  onYes: () => void;
  onLeave: () => void;
}

/** A step that asks again: the focus is on the button that does it. */
export function Question({ text, yes, isBusy, onYes, onLeave }: QuestionProps) {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => bar.current?.querySelector("button")?.focus(), []);
  return (
    <div ref={bar} className={classes.bar} role="group" aria-label="Confirm" onKeyDown={(event) => leaveOnEscape(event, onLeave)}>
      <span className={classes.question}>{text}</span>
      <Button isMain isOff={isBusy} onClick={onYes}>
        {yes}
      </Button>
      <Button onClick={onLeave}>Back</Button>
    </div>
  );
}

interface CommentProps {
  label: string;
  yes: string;
  isNeeded: boolean;
  isBusy: boolean;
  onYes: (text: string) => void;
  onLeave: () => void;
}

export function Comment({ label, yes, isNeeded, isBusy, onYes, onLeave }: CommentProps) {
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const isOff = isBusy || (isNeeded && text.trim() === "");
  const onKeyDown = (event: KeyboardEvent) => {
    leaveOnEscape(event, onLeave);
    if (event.key === "Enter" && !event.shiftKey && !isOff && !event.nativeEvent.isComposing) {
      event.preventDefault();
      onYes(text.trim());
    }
  };
  return (
    <div className={classes.bar} role="group" aria-label={yes}>
      <label className={classes.comment}>
        {label}
        <textarea ref={field} rows={2} maxLength={20_000} value={text} onChange={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} />
      </label>
      <Button isMain isOff={isOff} onClick={() => onYes(text.trim())}>
        {yes}
      </Button>
      <Button onClick={onLeave}>Back</Button>
    </div>
  );
}

function leaveOnEscape(event: KeyboardEvent, onLeave: () => void): void {
  if (event.key !== "Escape") return;
  event.preventDefault();
  onLeave();
}
