/** The text of a file, coloured by its language, to read or to edit; opens at a line and marks what was searched for. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, RangeSetBuilder } from "@codemirror/state";
import { Decoration, EditorView, highlightActiveLine, keymap, type DecorationSet } from "@codemirror/view";
import { useEffect, useImperativeHandle, useRef, type Ref } from "react";
import { codeExtensions } from "@/shared/code/extensions";
import { support, type Language } from "@/shared/code/languages";
import classes from "../files.module.css";

export interface CodeHandle {
  search: () => void;
  focus: () => void;
}

export interface CodeTextProps {
  text: string;
  label: string;
  language: Language | null;
  isEditable: boolean;
  /** Line from 1 to open at. */
  line: number | null;
  marks: RegExp | null;
  onChange?: (text: string) => void;
  onSave?: () => void;
  onLeave?: () => void;
  ref?: Ref<CodeHandle>;
}

const MAX_MARKS = 5000;

export default function CodeText(props: CodeTextProps) {
  const { text, label, language, isEditable, line, marks, ref } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const handlers = useRef(props);
  useEffect(() => {
    handlers.current = props;
  });
  useEffect(() => {
    if (!host.current) return;
    const languageSlot = new Compartment();
    const editor = new EditorView({
      parent: host.current,
      doc: text,
      extensions: [
        ...codeExtensions(label, text),
        search({ top: true }),
        languageSlot.of([]),
        isEditable
          ? [
              history(),
              highlightActiveLine(),
              keymap.of([
                { key: "Mod-s", run: () => (handlers.current.onSave?.(), true), preventDefault: true },
                { key: "Escape", run: () => (handlers.current.onLeave?.(), true) },
                ...historyKeymap,
                indentWithTab,
              ]),
              EditorView.updateListener.of((update) => {
                if (update.docChanged) handlers.current.onChange?.(update.state.sliceDoc());
              }),
            ]
          : [EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0" })],
        keymap.of([...defaultKeymap, ...searchKeymap]),
        marks || line ? EditorView.decorations.of((shown) => hits(shown, marks, line)) : [],
      ],
    });
    view.current = editor;
    let isGone = false;
    if (language) {
      void support(language).then((loaded) => {
        if (!isGone) editor.dispatch({ effects: languageSlot.reconfigure(loaded) });
      });
    }
    if (line) {
      const { from } = editor.state.doc.line(Math.max(1, Math.min(line, editor.state.doc.lines)));
      editor.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    }
    if (isEditable) editor.focus();
    return () => {
      isGone = true;
      view.current = null;
      editor.destroy();
    };
  }, [text, label, language, isEditable, line, marks]);
  useImperativeHandle(ref, () => ({
    search: () => view.current && openSearchPanel(view.current),
    focus: () => view.current?.focus(),
  }));
  return <div ref={host} className={classes.code} />;
}

/** Return the marks of what is in view, and of the line that was opened. */
function hits(view: EditorView, marks: RegExp | null, line: number | null): DecorationSet {
  const found: { from: number; to: number; decoration: Decoration }[] = [];
  if (line && line <= view.state.doc.lines) {
    const { from } = view.state.doc.line(line);
    found.push({ from, to: from, decoration: Decoration.line({ class: "cm-hitLine" }) });
  }
  for (const { from, to } of marks ? view.visibleRanges : []) {
    for (const match of view.state.sliceDoc(from, to).matchAll(marks ?? /$^/g)) {
      if (found.length > MAX_MARKS) break;
      if (match[0] === "") continue;
      const start = from + match.index;
      found.push({ from: start, to: start + match[0].length, decoration: Decoration.mark({ class: "cm-hit" }) });
    }
  }
  const builder = new RangeSetBuilder<Decoration>();
  found.sort((left, right) => left.from - right.from || left.to - right.to);
  for (const { from, to, decoration } of found) builder.add(from, to, decoration);
  return builder.finish();
}
