/** The palette (Ctrl/Cmd K): pages, reviews that wait, files by name, and what this page can do, by typing a few letters. */
import { Modal, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useMemo, useState, type KeyboardEvent, type ReactNode } from "react";
import { useLocation } from "wouter";
import { useEntry, useMe } from "@/api/hooks";
import { useActions } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { splitPath } from "@/shared/names";
import { Keys } from "@/shared/states";
import classes from "./app.module.css";
import { routesFor } from "./routes";

interface Item {
  id: string;
  group: string;
  text: string;
  content: ReactNode;
  keys?: string;
  run: () => void;
}

const MAX_SHOWN = 60;
const MAX_FILES = 20;
const TYPING_MS = 150;
/** Fewer letters stand in too many names. */
const MIN_LETTERS = 2;
const MAX_LETTERS = 255;

export function Palette({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Modal.Root opened={isOpen} onClose={onClose} size={560} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label="Palette">{isOpen && <PaletteBody onClose={onClose} />}</Modal.Content>
    </Modal.Root>
  );
}

function useItems(): Item[] {
  const me = useMe();
  const [, navigate] = useLocation();
  const layers = useActions();
  const pending = useEntry("reviews", "pending_reviews", {}, { enabled: me.kind === "person" });
  return useMemo(() => {
    const items: Item[] = [];
    for (const layer of layers) {
      for (const action of layer.actions) {
        if (action.isMotion || action.isOff) continue;
        const { label, keys, run } = action;
        items.push({ id: `${layer.group}:${keys}`, group: layer.group, text: label, content: label, keys, run });
      }
    }
    for (const review of pending.data?.reviews ?? []) {
      const { name } = splitPath(review.path);
      items.push({
        id: review.review_id,
        group: "Reviews",
        text: `${name} ${review.review_id}`,
        content: <Name>{name}</Name>,
        run: () => navigate(`/reviews/${review.review_id}`),
      });
    }
    for (const { nav } of routesFor(me)) {
      if (nav && !items.some((item) => item.text === `Go to ${nav.label}`)) {
        items.push({ id: nav.to, group: "Pages", text: nav.label, content: nav.label, run: () => navigate(nav.to) });
      }
    }
    return items;
  }, [layers, pending.data, me, navigate]);
}

/** Return the files whose names hold what was typed; none while it is short, and none for a tenant. */
function useFiles(typed: string): Item[] {
  const me = useMe();
  const [, navigate] = useLocation();
  const [asked] = useDebouncedValue(typed.trim(), TYPING_MS);
  const isAsked = me.kind === "person" && asked.length >= MIN_LETTERS;
  const { data } = useEntry("files", "find_names", { text: asked.slice(0, MAX_LETTERS), path: "", limit: MAX_FILES }, { enabled: isAsked });
  if (!isAsked || !data) return [];
  return data.hits.map(({ path, name }) => {
    const { folder } = splitPath(path);
    return {
      id: `file:${path}`,
      group: "Files",
      text: name,
      content: (
        <>
          <Name>{name}</Name>{" "}
          <span className={classes.paletteFolder}>
            <Name>{folder}</Name>
          </span>
        </>
      ),
      run: () => navigate(`/files?${new URLSearchParams({ at: path }).toString()}`),
    };
  });
}

/** Return whether the letters of what was typed occur in a text in their order. */
export function matches(typed: string, text: string): boolean {
  let at = 0;
  const lower = text.toLowerCase();
  for (const char of typed.toLowerCase().replace(/\s+/g, "")) {
    at = lower.indexOf(char, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

function PaletteBody({ onClose }: { onClose: () => void }) {
  const items = useItems();
  const [typed, setTyped] = useState("");
  const [active, setActive] = useState(0);
  const files = useFiles(typed);
  const visible = [...items.filter((item) => matches(typed, item.text)).slice(0, MAX_SHOWN), ...files];
  const current = Math.min(active, visible.length - 1);

  const choose = (item: Item | undefined) => {
    if (!item) return;
    onClose();
    // After the dialog has given the focus back, so that an action may move it.
    setTimeout(item.run, 0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((current + step + visible.length) % Math.max(1, visible.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(visible[current]);
    }
  };
  return (
    <div>
      <TextInput
        data-autofocus
        variant="unstyled"
        size="md"
        className={classes.paletteInput}
        leftSection={<IconSearch size={16} />}
        placeholder="Go to, open, or do…"
        aria-label="Go to, open, or do"
        role="combobox"
        aria-expanded
        aria-controls="palette-list"
        aria-activedescendant={visible[current] ? `palette-${current}` : undefined}
        value={typed}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette-list" role="listbox" aria-label="Matches" className={classes.paletteList}>
        {visible.map((item, at) => (
          <div
            key={item.id}
            id={`palette-${at}`}
            role="option"
            aria-selected={at === current}
            className={classes.paletteItem}
            ref={at === current ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
            onMouseMove={() => setActive(at)}
            onClick={() => choose(item)}
          >
            <span className={classes.paletteGroup}>{item.group}</span>
            <span className={classes.paletteText}>{item.content}</span>
            {item.keys && <Keys>{item.keys}</Keys>}
          </div>
        ))}
        {visible.length === 0 && <p className={classes.paletteNone}>Nothing matches.</p>}
      </div>
    </div>
  );
}
