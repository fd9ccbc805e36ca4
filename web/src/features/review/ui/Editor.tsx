/** The editor of a review: the file as it is on the left, the person's text on the right, marked by the server's hunks. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { defaultHighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Change, MergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { parseHunk, textRanges, type TextRange } from "@/shared/diff/hunks";
import { cspNonce } from "@/shared/nonce";
import { lineHunks } from "../rules/line_diff";
import classes from "./review.module.css";

/** Characters that CodeMirror would draw as nothing, beside its own list: directions, isolates, fillers, selectors. */
const UNSEEN = new RegExp(
  [
    "\\u034f|\\u061c|\\u115f|\\u1160|\\u17b4|\\u17b5|[\\u180b-\\u180f]|[\\u2000-\\u200f]|[\\u2028-\\u202f]|[\\u205f-\\u206f]",
    "\\u2800|\\u3000|\\u3164|[\\ufe00-\\ufe0f]|\\ufeff|\\uffa0|[\\ufff9-\\ufffc]|\\udb40[\\udc00-\\uddef]",
  ].join("|"),
  "g",
);

const look = EditorView.theme({
  "&": { fontSize: "13px", height: "100%" },
  ".cm-content, .cm-gutters": { fontFamily: "var(--hf-mono)", lineHeight: "20px" },
  ".cm-gutters": { background: "var(--hf-raised)", color: "var(--hf-dim)", borderInlineEnd: "1px solid var(--hf-line)" },
  ".cm-content": { caretColor: "var(--hf-text)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "var(--hf-hover)" },
  ".cm-cursor": { borderLeftColor: "var(--hf-text)" },
  ".cm-specialChar": { color: "var(--hf-warn-text)", background: "var(--hf-warn-soft)" },
  ".cm-panels": { background: "var(--hf-raised)", color: "var(--hf-text)", borderColor: "var(--hf-line)" },
  "&.cm-merge-a .cm-changedLine": { background: "var(--hf-remove-line)" },
  "&.cm-merge-b .cm-changedLine": { background: "var(--hf-add-line)" },
  "&.cm-merge-a .cm-changedText": { background: "none" },
  "&.cm-merge-b .cm-changedText": { background: "none" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: "'⋯'" },
  "&.cm-merge-a .cm-changedLineGutter": { background: "var(--hf-remove-sign)" },
  "&.cm-merge-b .cm-changedLineGutter": { background: "var(--hf-add-sign)" },
  ".cm-collapsedLines": { background: "var(--hf-raised)", color: "var(--hf-dim)" },
});

function common(label: string, text: string): Extension[] {
  return [
    EditorView.cspNonce.of(cspNonce()),
    lineNumbers(),
    highlightSpecialChars({ addSpecialChars: UNSEEN }),
    drawSelection(),
    syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label }),
    text.includes("\r") ? EditorState.lineSeparator.of("\n") : [],
    look,
  ];
}

export interface EditorProps {
  before: string;
  proposed: string;
  text: string;
  ranges: readonly TextRange[];
  onChange: (text: string) => void;
  onDone: () => void;
  onLeave: () => void;
}

export default function Editor(props: EditorProps) {
  const { before, proposed, ranges, onChange, onDone, onLeave } = props;
  const host = useRef<HTMLDivElement>(null);
  const first = useRef(props.text);
  const handlers = useRef({ onChange, onDone, onLeave });
  useEffect(() => {
    handlers.current = { onChange, onDone, onLeave };
  });
  useEffect(() => {
    if (!host.current) return;
    const diffConfig = {
      // The server's hunks while both texts are as the server knows them; its own only around what is typed.
      override: (a: string, b: string) =>
        (a === before && b === proposed ? ranges : textRanges(a, b, lineHunks(a, b).map(parseHunk))).map(
          (range) => new Change(range.fromA, range.toA, range.fromB, range.toB),
        ),
    };
    const view = new MergeView({
      parent: host.current,
      a: {
        doc: before,
        extensions: [...common("The file as it is", before), EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0" })],
      },
      b: {
        doc: first.current,
        extensions: [
          ...common("Your text", proposed),
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
        ],
      },
      collapseUnchanged: { margin: 3, minSize: 8 },
      highlightChanges: false,
      gutter: true,
      diffConfig,
    });
    view.b.focus();
    return () => view.destroy();
  }, [before, proposed, ranges]);
  return <div ref={host} className={classes.editor} />;
}
