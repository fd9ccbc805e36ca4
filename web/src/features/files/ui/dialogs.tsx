/** What asks before something is made, moved or deleted. */
import { Button, Group, Modal, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { asFault } from "@/api/fault";
import { useCanAct } from "@/api/hooks";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { isPlain } from "@/shared/names";
import { Fault, Loading } from "@/shared/states";
import { formatSize, quantity } from "@/shared/times";
import { makeFolder, move, previewDelete, remove, save, type Deletion, type Done } from "../actions";
import classes from "../files.module.css";
import { nameOf } from "../opened";
import { childOf, idOf, parentOf, type Place } from "../rules/place";

/** What is asked for, and of which place. */
export type Asked = { what: "file" | "folder" | "move" | "delete"; place: Place };

export interface DialogProps {
  asked: Asked | null;
  onClose: () => void;
  onDone: (message: ReactNode, done: Done, what: Asked["what"]) => void;
}

export function Dialogs({ asked, onClose, onDone }: DialogProps) {
  return (
    <Modal opened={asked !== null} onClose={onClose} title={asked ? titleOf(asked) : ""} size={520} closeButtonProps={{ "aria-label": "Close" }}>
      {asked?.what === "delete" && <DeleteBody place={asked.place} onClose={onClose} onDone={onDone} />}
      {asked && asked.what !== "delete" && <PathBody key={idOf(asked.place)} asked={{ ...asked, what: asked.what }} onClose={onClose} onDone={onDone} />}
    </Modal>
  );
}

function titleOf({ what, place }: Asked): ReactNode {
  if (what === "file") return "New file";
  if (what === "folder") return "New folder";
  return (
    <>
      {what === "move" ? "Rename or move " : "Delete "}
      <Name>{nameOf(place)}</Name>
    </>
  );
}

type Rest = Omit<DialogProps, "asked">;

function PathBody({ asked, onClose, onDone }: Rest & { asked: { what: "file" | "folder" | "move"; place: Place } }) {
  const { what, place } = asked;
  const folder = what === "move" ? parentOf(place) : place;
  const name = what === "move" ? nameOf(place) : "";
  const isShown = name === "" || (isPlain(name) && !name.includes("\ufffd"));
  // A field would draw characters that are not seen as they are: what is offered there is without them.
  const [typed, setTyped] = useState(() => `${folder.path.replace(/\/$/, "")}/${isShown ? name : cleaned(name)}`);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const canAct = useCanAct();
  const target: Place = typed.startsWith("/") || typed.startsWith("file:///") ? { ...place, path: typed } : childOf(folder, typed);
  const run = async () => {
    setBusy(true);
    try {
      const done = what === "file" ? await save(target, "", null, "") : what === "folder" ? await makeFolder(target) : await move(place, target);
      onDone(<Told what={what} name={nameOf(target)} />, done, what);
    } catch (error) {
      setProblem(asFault(error).message);
      setBusy(false);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <TextInput
        label={what === "move" ? "New path" : "Path"}
        description={isShown ? undefined : "The present name has characters that cannot be seen; they are left out here."}
        error={problem && <Words text={problem} />}
        value={typed}
        data-autofocus
        spellCheck={false}
        autoComplete="off"
        onFocus={(event) => {
          const end = event.currentTarget.value.length;
          event.currentTarget.setSelectionRange(what === "move" ? event.currentTarget.value.lastIndexOf("/") + 1 : end, end);
        }}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
          setProblem("");
        }}
      />
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" disabled={!canAct || isBusy || target.path.endsWith("/") || idOf(target) === idOf(place)}>
          {what === "move" ? "Move" : "Create"}
        </Button>
      </Group>
    </form>
  );
}

function cleaned(name: string): string {
  return Array.from(name)
    .filter((char) => isPlain(`a${char}a`) && char !== "\ufffd")
    .join("");
}

function Told({ what, name }: { what: string; name: string }) {
  return (
    <>
      {what === "move" ? "Moved to " : "Made "}
      <Name>{name}</Name>
    </>
  );
}

function DeleteBody({ place, onClose, onDone }: Rest & { place: Place }) {
  const counted = useQuery({
    queryKey: [place.kind === "local" ? "files" : "store", "deletion", idOf(place)],
    queryFn: ({ signal }) => previewDelete(place, signal),
    staleTime: 0,
    gcTime: 0,
  });
  const [problem, setProblem] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const canAct = useCanAct();
  const confirm = useRef<HTMLButtonElement>(null);
  const isCounted = counted.isSuccess;
  useEffect(() => {
    if (isCounted) confirm.current?.focus();
  }, [isCounted]);
  const run = async (deletion: Deletion) => {
    setBusy(true);
    try {
      onDone(<>Deleted {whatGoes(deletion, place)}</>, await remove(place, deletion), "delete");
    } catch (error) {
      setProblem(error);
      setBusy(false);
      void counted.refetch();
    }
  };
  return (
    <>
      {counted.isError && <Fault error={counted.error} onRetry={() => void counted.refetch()} />}
      {counted.isPending && <Loading rows={2} label="Counting" />}
      {counted.isSuccess && (
        <p className={classes.question}>
          {whatGoes(counted.data, place)}, {formatSize(counted.data.sizeBytes)}, will go.{" "}
          {counted.data.canBeUndone ? "Undo brings all of it back." : "It is too large to be kept: undo cannot bring it back."}
        </p>
      )}
      {problem !== null && <Fault error={problem} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          ref={confirm}
          disabled={!canAct || isBusy || !counted.isSuccess}
          onClick={() => counted.data && void run(counted.data)}
        >
          {counted.data ? `Delete ${whatGoes(counted.data, place)}` : "Delete"}
        </Button>
      </Group>
    </>
  );
}

function whatGoes({ entries, files, directories, isFolder }: Deletion, place: Place): string {
  if (!isFolder) return "1 file";
  if (place.kind === "store") return quantity(files, "file");
  return `${quantity(entries, "entry", "entries")} (${quantity(files, "file")}, ${quantity(directories, "folder")})`;
}
