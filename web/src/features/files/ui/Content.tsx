/** The content of a file by its type; a text is edited here and saved under the hash that was read. */
import { Button } from "@mantine/core";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { ApiFault } from "@/api/fault";
import { useCanAct } from "@/api/hooks";
import { dropDraft, loadDraft, saveDraft } from "@/shared/drafts";
import { useKeys } from "@/shared/keys";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { Empty, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { showFault, showToast } from "@/shared/toasts";
import { languageOf } from "@/shared/code/languages";
import { save, type Done } from "../actions";
import classes from "../files.module.css";
import { open, type OpenedFile } from "../opened";
import { contentKind, editorText, lineOfByte } from "../rules/content";
import { idOf } from "../rules/place";
import type { CodeHandle } from "./CodeText";
import { Conflict } from "./Conflict";
import { Media } from "./Media";

const CodeText = lazy(() => import("./CodeText"));
const DRAFT_MS = 300;

export interface ContentProps {
  file: OpenedFile;
  line: number | null;
  byte: number | null;
  marks: RegExp | null;
  onDone: (message: ReactNode, done: Done) => void;
}

export function Content(props: ContentProps) {
  const { file } = props;
  const kind = contentKind(file);
  if (kind === "text" && file.text !== null) return <TextContent {...props} text={file.text} />;
  if (kind === "none") {
    return (
      <div className={classes.padded}>
        <Empty title="There is no text to show.">{file.reason ?? "It is neither text nor an image, a sound or a video."}</Empty>
      </div>
    );
  }
  return (
    <div className={classes.padded}>
      <Media file={file} kind={kind} />
    </div>
  );
}

/** What a person edits: the text and hash that it began with, and the text as it is. */
interface Edit {
  base: string;
  hash: string | null;
  text: string;
}

/** Both texts of a save that met another one. */
interface Met {
  theirs: string;
  theirHash: string | null;
}

function TextContent({ file, text, line, byte, marks, onDone }: ContentProps & { text: string }) {
  const key = `file:${idOf(file.place)}`;
  const canAct = useCanAct();
  const canEdit = canAct && file.canSave;
  const shown = useMemo(() => editorText(text, file.place.kind), [text, file.place.kind]);
  const language = useMemo(() => languageOf(file.name, text.length), [file.name, text.length]);
  const at = useMemo(() => line ?? (byte === null ? null : lineOfByte(text, byte)), [line, byte, text]);
  const [edit, setEdit] = useState<Edit | null>(null);
  const [met, setMet] = useState<Met | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isKept, setKept] = useState(true);
  const [draft, setDraft] = useState(() => loadDraft(key));
  const code = useRef<CodeHandle>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const keep = useCallback(
    (current: Edit) => {
      clearTimeout(timer.current);
      timer.current = setTimeout(() => setKept(saveDraft(key, JSON.stringify([current.hash, current.base]), current.text)), DRAFT_MS);
    },
    [key],
  );
  useEffect(() => () => clearTimeout(timer.current), []);
  const change = (changed: string) => {
    if (!edit) return;
    const current = { ...edit, text: changed };
    setEdit(current);
    keep(current);
  };
  const begin = () => {
    if (canEdit) setEdit({ base: shown.text, hash: file.hash, text: shown.text });
  };
  const resume = () => {
    if (!draft) return;
    const [hash, base] = JSON.parse(draft.shownHash) as [string | null, string];
    setEdit({ base, hash, text: draft.text });
    setDraft(null);
  };
  const end = () => {
    clearTimeout(timer.current);
    dropDraft(key);
    setDraft(null);
    setEdit(null);
    setMet(null);
  };
  const store = async (edited: string, hash: string | null, before: string) => {
    if (isBusy) return;
    setBusy(true);
    try {
      const done = await save(file.place, shown.restore(edited), hash, before);
      end();
      if (done.undo === null) showToast("The file holds just that already.");
      else onDone(<Saved name={file.name} />, done);
    } catch (error) {
      if (error instanceof ApiFault && error.code === "CONFLICT") await meet();
      else showFault(error, "It was not saved");
    } finally {
      setBusy(false);
    }
  };
  const meet = async () => {
    const theirs = await open(file.place).catch(() => null);
    if (theirs?.type === "file" && theirs.text !== null) setMet({ theirs: editorText(theirs.text, file.place.kind).text, theirHash: theirs.hash });
    else if (theirs?.type === "gone") setMet({ theirs: "", theirHash: null });
    else showFault(new ApiFault(409, "CONFLICT", "It is no text any more. Your draft is kept.", false), "It was not saved");
  };
  const isChanged = edit !== null && edit.text !== edit.base;
  const submit = () => {
    if (edit && isChanged && canEdit) void store(edit.text, edit.hash, edit.base);
  };
  useKeys("Text", [
    { keys: "e", label: "Edit the text", run: begin, isOff: !canEdit || edit !== null },
    { keys: "f", label: "Find in the text", run: () => code.current?.search() },
  ]);

  if (edit && met) {
    return (
      <Conflict
        base={edit.base}
        mine={edit.text}
        theirs={met.theirs}
        isBusy={isBusy}
        onSave={(resolved) => void store(resolved, met.theirHash, met.theirs)}
        onBack={() => setMet(null)}
      />
    );
  }
  return (
    <>
      {!edit && draft && (
        <div className={classes.notice}>
          <span>
            You have a draft of this file from <Time at={new Date(draft.savedAt).toISOString()} />.
          </span>
          <span className={classes.buttons}>
            <Button disabled={!canEdit} onClick={resume}>
              Go on with your draft
            </Button>
            <Button variant="default" onClick={end}>
              Drop it
            </Button>
          </span>
        </div>
      )}
      {edit && edit.hash !== file.hash && (
        <div className={classes.notice}>
          <span>The file was changed since you began. Saving shows both texts.</span>
        </div>
      )}
      {file.reason && (
        <div className={classes.notice}>
          <Words text={file.reason} />
        </div>
      )}
      <Suspense fallback={<Loading />}>
        {edit ? (
          <EditedText edit={edit} language={language} onChange={change} onSave={submit} handle={code} />
        ) : (
          <CodeText ref={code} text={shown.text} label="Content" language={language} isEditable={false} line={at} marks={marks} />
        )}
      </Suspense>
      <div className={classes.bar}>
        {edit ? (
          <>
            <Button disabled={!isChanged || !canEdit || isBusy} title="Ctrl S" onClick={submit}>
              Save
            </Button>
            <Button variant="default" onClick={end}>
              {isChanged ? "Discard" : "Done"}
            </Button>
            <span className={classes.dim}>
              {!isChanged ? "" : isKept ? "Your draft is kept in this browser." : "This browser has no room for a draft."}
            </span>
          </>
        ) : (
          <>
            <Button variant="default" disabled={!canEdit} onClick={begin}>
              Edit
            </Button>
            <Button variant="subtle" color="gray" onClick={() => code.current?.search()}>
              Find
            </Button>
          </>
        )}
      </div>
    </>
  );
}

/** The editor holds the text itself: what it was given first is not given again while the person types. */
function EditedText({ edit, language, onChange, onSave, handle }: {
  edit: Edit;
  language: ReturnType<typeof languageOf>;
  onChange: (text: string) => void;
  onSave: () => void;
  handle: React.Ref<CodeHandle>;
}) {
  const [first] = useState(edit.text);
  return <CodeText ref={handle} text={first} label="Your text" language={language} isEditable line={null} marks={null} onChange={onChange} onSave={onSave} />;
}

function Saved({ name }: { name: string }) {
  return (
    <>
      Saved <Name>{name}</Name>
    </>
  );
}
