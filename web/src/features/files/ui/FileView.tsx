/** One file or folder: its content, its history, its facts, and what can be done with it. */
import { Button, Menu } from "@mantine/core";
import { IconAlertTriangle, IconArrowLeft, IconDots } from "@tabler/icons-react";
import { useMemo, type ReactNode } from "react";
import { useCanAct } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { countHidden } from "@/shared/names";
import { Empty, Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import { formatSize, quantity } from "@/shared/times";
import type { Done } from "../actions";
import classes from "../files.module.css";
import { useOpened, type Opened } from "../opened";
import type { Place } from "../rules/place";
import { Content } from "./Content";
import type { Asked } from "./dialogs";
import { History } from "./History";
import { Info } from "./Info";

export type View = "text" | "history" | "info";

export interface FileViewProps {
  place: Place;
  isTop: boolean;
  view: View;
  line: number | null;
  byte: number | null;
  marks: RegExp | null;
  onView: (view: View) => void;
  onAsk: (asked: Asked) => void;
  onDone: (message: ReactNode, done: Done) => void;
  onUndo: (changeId: string) => Promise<void>;
  onBack: () => void;
}

const VIEWS: readonly { view: View; label: string }[] = [
  { view: "text", label: "Content" },
  { view: "history", label: "History" },
  { view: "info", label: "Info" },
];

export function FileView(props: FileViewProps) {
  const { place, view, onBack } = props;
  const opened = useOpened(place);
  if (opened.isError) {
    return (
      <div className={classes.content}>
        <Head {...props} opened={null} />
        <div className={classes.padded}>
          <Fault error={opened.error} onRetry={() => void opened.refetch()} />
        </div>
      </div>
    );
  }
  if (opened.isPending) {
    return (
      <div className={classes.content}>
        <Back onBack={onBack} />
        <div className={classes.padded}>
          <Loading />
        </div>
      </div>
    );
  }
  const file = opened.data;
  const present = file.type === "file" && file.text !== null && file.hash !== null ? { text: file.text, hash: file.hash } : null;
  const isHistory = view === "history" || (file.type === "gone" && view === "text");
  return (
    <div className={classes.content}>
      <Head {...props} opened={file} />
      {isHistory ? (
        <div className={classes.padded}>
          {place.kind === "store" && file.type === "folder" ? (
            <Empty title="Folders of the store have no history of their own.">Open a file to see its versions.</Empty>
          ) : (
            <>
              {file.type === "gone" && place.kind === "local" && <p className={classes.question}>Nothing is here any more. What became of it:</p>}
              <History place={place} present={present} onDone={props.onDone} onUndo={props.onUndo} />
            </>
          )}
        </div>
      ) : view === "info" ? (
        <div className={classes.padded}>
          <Info opened={file} />
        </div>
      ) : file.type === "file" ? (
        <Content key={`${file.place.kind}${file.place.path}`} file={file} line={props.line} byte={props.byte} marks={props.marks} onDone={props.onDone} />
      ) : (
        <FolderContent {...props} opened={file} />
      )}
    </div>
  );
}

function Back({ onBack }: { onBack: () => void }) {
  return (
    <button type="button" className={classes.back} onClick={onBack}>
      <IconArrowLeft size={16} stroke={1.6} aria-hidden />
      <span>Files</span>
    </button>
  );
}

function Head({ place, opened, view, isTop, onView, onAsk, onBack }: FileViewProps & { opened: Opened | null }) {
  const canAct = useCanAct();
  const canChange = canAct && opened !== null && opened.type !== "gone" && !isTop;
  const ask = (what: Asked["what"]) => onAsk({ what, place });
  useKeys("File", [
    { keys: "t", label: "Show the content", run: () => onView("text") },
    { keys: "h", label: "Show the history", run: () => onView("history") },
    { keys: "i", label: "Show the facts", run: () => onView("info") },
    { keys: "F2", label: "Rename or move", run: () => ask("move"), isOff: !canChange },
    { keys: "Delete", label: "Delete…", run: () => ask("delete"), isOff: !canChange },
  ]);
  const hidden = useMemo(() => (opened?.type === "file" && opened.text !== null ? countHidden(opened.text) : 0), [opened]);
  return (
    <header className={classes.head}>
      <Back onBack={onBack} />
      <div className={classes.title}>
        <h2 className={classes.name}>
          <Name>{opened?.name ?? place.path}</Name>
        </h2>
        {opened?.type === "file" && (
          <span className={classes.dim}>
            {formatSize(opened.sizeBytes)}
            {opened.modifiedAt && (
              <>
                , changed <Time at={opened.modifiedAt} />
              </>
            )}
          </span>
        )}
        {hidden > 0 && (
          <span className={classes.warning}>
            <IconAlertTriangle size={14} stroke={1.8} aria-hidden />
            {quantity(hidden, "hidden character")}
          </span>
        )}
      </div>
      <div className={classes.headActions}>
        <nav className={classes.tabs} aria-label="Views of the file">
          {VIEWS.map((each) => (
            <button key={each.view} type="button" className={classes.tab} aria-current={each.view === view ? "page" : undefined} onClick={() => onView(each.view)}>
              {each.label}
            </button>
          ))}
        </nav>
        {canChange && (
          <span className={classes.wideActions}>
            <Button variant="default" onClick={() => ask("move")}>
              Rename
            </Button>
            <Button variant="default" onClick={() => ask("delete")}>
              Delete…
            </Button>
          </span>
        )}
        {canChange && (
          <span className={classes.narrowActions}>
            <Menu position="bottom-end">
              <Menu.Target>
                <Button variant="default" aria-label="Actions">
                  <IconDots size={16} stroke={1.6} />
                </Button>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => ask("move")}>Rename or move</Menu.Item>
                <Menu.Item onClick={() => ask("delete")}>Delete…</Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </span>
        )}
      </div>
    </header>
  );
}

function FolderContent({ place, opened, onAsk }: FileViewProps & { opened: Opened }) {
  const canAct = useCanAct();
  return (
    <div className={classes.padded}>
      <p className={classes.question}>Its entries are in the tree: Right arrow opens it, and what is typed into the filter is looked for in it.</p>
      <span className={classes.buttons}>
        <Button variant="default" disabled={!canAct} onClick={() => onAsk({ what: "file", place })}>
          New file
        </Button>
        {place.kind === "local" && (
          <Button variant="default" disabled={!canAct} onClick={() => onAsk({ what: "folder", place })}>
            New folder
          </Button>
        )}
      </span>
      <Info opened={opened} />
    </div>
  );
}
