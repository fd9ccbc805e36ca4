/** "Move to…": an existing folder, a new one, or leave the files where they are, by typing a few letters. */
import { Modal, TextInput } from "@mantine/core";
import { IconFolder, IconFolderPlus, IconHandStop } from "@tabler/icons-react";
import { useState, type KeyboardEvent } from "react";
import { Name } from "@/shared/Name";
import { quantity } from "@/shared/times";
import classes from "../organise.module.css";
import { offerFolders, type FolderChoice } from "../rules/folders";
import type { PlanRow } from "./rows";

export interface MoveToProps {
  rows: readonly PlanRow[];
  shelves: readonly string[];
  onChoose: (folder: string | null) => void;
  onClose: () => void;
}

export function MoveTo({ rows, shelves, onChoose, onClose }: MoveToProps) {
  const [typed, setTyped] = useState("");
  const [active, setActive] = useState(0);
  const choices = offerFolders(typed, shelves);
  const current = Math.min(active, choices.length - 1);
  const choose = (choice: FolderChoice | undefined) => {
    if (!choice) return;
    onClose();
    onChoose(choice.folder);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setActive((current + (event.key === "ArrowDown" ? 1 : -1) + choices.length) % Math.max(1, choices.length));
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      event.preventDefault();
      choose(choices[current]);
    }
  };
  const [first] = rows;
  return (
    <Modal.Root opened onClose={onClose} size={520} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label="Move to">
        <p className={classes.moveWhat}>
          Move {rows.length === 1 && first ? <Name>{first.name}</Name> : quantity(rows.length, "file")} to
        </p>
        <TextInput
          data-autofocus
          variant="unstyled"
          size="md"
          className={classes.moveInput ?? ""}
          placeholder="A folder, or a new name such as Invoices/2024"
          aria-label="Folder"
          role="combobox"
          aria-expanded
          aria-controls="move-list"
          aria-activedescendant={choices[current] ? `move-${current}` : undefined}
          maxLength={1000}
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
            setActive(0);
          }}
          onKeyDown={onKeyDown}
        />
        <div id="move-list" role="listbox" aria-label="Folders" className={classes.moveList}>
          {choices.map((choice, at) => (
            <div
              key={choice.id}
              id={`move-${at}`}
              role="option"
              aria-selected={at === current}
              className={classes.moveItem}
              ref={at === current ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
              onMouseMove={() => setActive(at)}
              onClick={() => choose(choice)}
            >
              <Choice choice={choice} />
            </div>
          ))}
        </div>
      </Modal.Content>
    </Modal.Root>
  );
}

function Choice({ choice }: { choice: FolderChoice }) {
  if (choice.folder === null) {
    return (
      <>
        <IconHandStop size={16} stroke={1.6} aria-hidden /> Leave it where it is
      </>
    );
  }
  const Icon = choice.isNew ? IconFolderPlus : IconFolder;
  return (
    <>
      <Icon size={16} stroke={1.6} aria-hidden />
      <span>
        <Name>{choice.folder}</Name>
        {choice.isNew && <span className={classes.dim}> (new folder)</span>}
      </span>
    </>
  );
}
