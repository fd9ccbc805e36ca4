/** The JSON view of a call: the one text that is sent, with the line marked where it is wrong. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { Decoration, EditorView, keymap } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { codeExtensions } from "@/shared/code/extensions";
import type { Place } from "../rules/json_text";
import classes from "../tools.module.css";

/** The ring stands around the whole box, whose corners are round. */
const ring = EditorView.theme({
  "&.cm-focused": { outline: "none" },
  "&.cm-focused .cm-matchingBracket": { background: "var(--hf-selected)" },
});

/** Return the mark on a fault: its line, and the character where reading stopped. */
function marks(fault: Place | null, length: number): Extension {
  if (!fault || fault.from > length) return [];
  return EditorView.decorations.of((view) => {
    const line = view.state.doc.lineAt(Math.min(fault.from, view.state.doc.length));
    const shown = [Decoration.line({ class: classes.faultLine ?? "" }).range(line.from)];
    const to = Math.min(fault.to, view.state.doc.length);
    if (to > fault.from) shown.push(Decoration.mark({ class: classes.faultMark ?? "" }).range(fault.from, to));
    return Decoration.set(shown, true);
  });
}

export interface JsonEditorProps {
  text: string;
  fault: Place | null;
  /** Where the selection goes when it changes. */
  goTo: Place | null;
  onChange: (text: string) => void;
}

export default function JsonEditor({ text, fault, goTo, onChange }: JsonEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<{ view: EditorView; faults: Compartment } | null>(null);
  const first = useRef(text);
  const changed = useRef(onChange);
  useEffect(() => {
    changed.current = onChange;
  });
  useEffect(() => {
    if (!host.current) return;
    const faults = new Compartment();
    const view = new EditorView({
      parent: host.current,
      doc: first.current,
      extensions: [
        codeExtensions("Arguments as JSON", first.current),
        history(),
        json(),
        bracketMatching(),
        EditorState.tabSize.of(2),
        // Ctrl Enter runs the tool: the page hears it, and no line is opened here.
        keymap.of([{ key: "Mod-Enter", run: () => true }, { key: "Escape", run: (own) => (own.contentDOM.blur(), true) }, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        ring,
        faults.of([]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed.current(update.state.sliceDoc());
        }),
      ],
    });
    editor.current = { view, faults };
    return () => {
      editor.current = null;
      view.destroy();
    };
  }, []);
  useEffect(() => {
    if (!editor.current) return;
    const { view, faults } = editor.current;
    if (view.state.sliceDoc() !== text) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    view.dispatch({ effects: faults.reconfigure(marks(fault, text.length)) });
  }, [text, fault]);
  useEffect(() => {
    if (!editor.current || !goTo) return;
    const { view } = editor.current;
    const length = view.state.doc.length;
    view.dispatch({ selection: { anchor: Math.min(goTo.from, length), head: Math.min(goTo.to, length) }, scrollIntoView: true });
    view.focus();
  }, [goTo]);
  return <div ref={host} className={classes.jsonEditor} />;
}
