/** Toasts: what happened, and for ten seconds the way back. */
import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState, type ReactNode } from "react";
import { asFault } from "@/api/fault";
import { Words } from "./LineText";
import classes from "./shared.module.css";

const UNDO_MS = 10_000;
const CLOSE = { closeButtonProps: { "aria-label": "Close" } };

interface Undo {
  id: string;
  run: () => Promise<void>;
}

let newest: Undo | null = null;

export function showToast(message: ReactNode, id?: string): void {
  notifications.show({ ...CLOSE, message: typeof message === "string" ? <Words text={message} /> : message, withBorder: true, ...(id ? { id } : {}) });
}

export function showFault(error: unknown, doing: string): void {
  const fault = asFault(error);
  notifications.show({ ...CLOSE, title: doing, message: <FaultWords code={fault.code} text={fault.message} />, color: "yellow", withBorder: true, autoClose: 8000 });
}

function FaultWords({ code, text }: { code: string; text: string }) {
  return (
    <>
      {code}: <Words text={text} />
    </>
  );
}

/** Say what was done and offer its undo for ten seconds; `z` does the same. `about` names it for `forgetUndo`. */
export function showUndo(message: ReactNode, what: string, undo: () => Promise<void>, about: string = crypto.randomUUID()): void {
  const id = `undo-${about}`;
  const run = async () => {
    if (newest?.id === id) newest = null;
    notifications.hide(id);
    try {
      await undo();
    } catch (error) {
      showFault(error, "It was not undone");
    }
  };
  newest = { id, run };
  notifications.show({
    ...CLOSE,
    id,
    withBorder: true,
    autoClose: UNDO_MS,
    onClose: () => {
      if (newest?.id === id) newest = null;
    },
    message: <UndoBody message={message} what={what} run={run} />,
  });
}

/** Take an offer back, because it was undone elsewhere. */
export function forgetUndo(about: string): void {
  if (newest?.id === `undo-${about}`) newest = null;
  notifications.hide(`undo-${about}`);
}

/** Undo what the newest toast offers; false when none does. */
export function undoNewest(): boolean {
  if (!newest) return false;
  void newest.run();
  return true;
}

function UndoBody({ message, what, run }: { message: ReactNode; what: string; run: () => Promise<void> }) {
  const [isBusy, setBusy] = useState(false);
  return (
    <Group justify="space-between" wrap="nowrap" gap="md">
      <span>
        <span>{message}</span>
        <span className={classes.undoHint}>{what}: z</span>
      </span>
      <Button
        variant="default"
        disabled={isBusy}
        onClick={() => {
          setBusy(true);
          void run();
        }}
      >
        Undo
      </Button>
    </Group>
  );
}

/** Ask a question in a toast that stays until it is answered. */
export function askInToast(id: string, message: ReactNode, yes: string, onYes: () => void, no: string, onNo: () => void): void {
  const answer = (then: () => void) => {
    notifications.hide(id);
    then();
  };
  notifications.show({
    id,
    withBorder: true,
    autoClose: false,
    withCloseButton: false,
    message: (
      <Group justify="space-between" gap="sm">
        <span>{message}</span>
        <Group gap="xs" wrap="nowrap">
          <Button onClick={() => answer(onYes)}>{yes}</Button>
          <Button variant="default" onClick={() => answer(onNo)}>
            {no}
          </Button>
        </Group>
      </Group>
    ),
  });
}
