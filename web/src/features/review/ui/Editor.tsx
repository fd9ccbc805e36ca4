/** The editor of a review: the file as it is on the left, the person's text on the right, marked by the server's hunks. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { Change, MergeView, unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { parseHunk, textRanges, type TextRange } from "@/shared/diff/hunks";
import { codeExtensions } from "@/shared/code/extensions";
import { languageOf, support } from "@/shared/code/languages";
import { lineHunks } from "@/shared/diff/line_diff";
import classes from "./review.module.css";

export interface EditorProps {
  path: string;
  before: string;
  proposed: string;
  text: string;
  ranges: readonly TextRange[];
  /** One column, in which what is removed stands above what takes its place. */
  isNarrow: boolean;
  onChange: (text: string) => void;
  onDone: () => void;
  onLeave: () => void;
}

export default function Editor(props: EditorProps) {
  const { path, before, proposed, ranges, isNarrow, onChange, onDone, onLeave } = props;
  const host = useRef<HTMLDivElement>(null);
  const first = useRef(props.text);
  const newest = useRef(props.text);
  const handlers = useRef({ onChange, onDone, onLeave });
  useEffect(() => {
    handlers.current = { onChange, onDone, onLeave };
    newest.current = props.text;
  });
  useEffect(() => {
    if (!host.current) return;
    first.current = newest.current;
    const diffConfig = {
      // The server's hunks while both texts are as the server knows them; its own only around what is typed.
      override: (a: string, b: string) =>
        (a === before && b === proposed ? ranges : textRanges(a, b, lineHunks(a, b).map(parseHunk))).map(
          (range) => new Change(range.fromA, range.toA, range.fromB, range.toB),
        ),
    };
    const language = new Compartment();
    const mine: Extension = [
      language.of([]),
      ...codeExtensions("Your text", proposed),
      history(),
      highlightActiveLine(),
      search({ top: true }),
      highlightSelectionMatches(),
      keymap.of([
        { key: "Mod-Enter", run: () => (handlers.current.onDone(), true) },
        { key: "Escape", run: () => (handlers.current.onLeave(), true) },
        ...defaultKeymap,
        ...historyKeymap,
        ...searchKeymap,
        indentWithTab,
      ]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) handlers.current.onChange(update.state.sliceDoc());
      }),
    ];
    const merge = { collapseUnchanged: { margin: 3, minSize: 8 }, highlightChanges: false, gutter: true, diffConfig };
    if (isNarrow) {
      const view = new EditorView({
        parent: host.current,
        doc: first.current,
        extensions: [mine, unifiedMergeView({ original: before, mergeControls: false, syntaxHighlightDeletions: false, ...merge })],
      });
      view.focus();
      return colour([view], language, path, proposed, () => view.destroy());
    }
    const view = new MergeView({
      parent: host.current,
      a: {
        doc: before,
        extensions: [...codeExtensions("The file as it is", before), language.of([]), EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0" })],
      },
      b: { doc: first.current, extensions: mine },
      ...merge,
    });
    view.b.focus();
    return colour([view.a, view.b], language, path, proposed, () => view.destroy());
  }, [path, before, proposed, ranges, isNarrow]);
  return (
    <div className={classes.editing}>
      {!isNarrow && (
        <div className={classes.editorTitles} aria-hidden>
          <span>The file as it is</span>
          <span>Your text</span>
        </div>
      )}
      <div ref={host} className={classes.editor} />
    </div>
  );
}

/** Colour the views by the language of a path, once it is loaded; returns what ends them. */
function colour(views: readonly EditorView[], slot: Compartment, path: string, text: string, destroy: () => void): () => void {
  const language = languageOf(path, text.length);
  let isGone = false;
  if (language) {
    void support(language).then((loaded) => {
      if (!isGone) for (const view of views) view.dispatch({ effects: slot.reconfigure(loaded) });
    });
  }
  return () => {
    isGone = true;
    destroy();
  };
}
