/** What every editor and every view of a text has: line numbers, unseen characters shown, colours of the theme. */
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { cspNonce } from "@/shared/nonce";

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
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: "var(--hf-selection)" },
  ".cm-searchMatch, .cm-hit": { background: "var(--hf-hit)", outline: "1px solid var(--hf-warn)" },
  ".cm-searchMatch .cm-specialChar": { color: "inherit" },
  ".cm-hitLine": { background: "var(--hf-selected)" },
  ".cm-panels": { background: "var(--hf-raised)", color: "var(--hf-text)", borderColor: "var(--hf-line)" },
  "&.cm-merge-a .cm-changedLine": { background: "var(--hf-remove-line)" },
  "&.cm-merge-b .cm-changedLine": { background: "var(--hf-add-line)" },
  ".cm-deletedChunk": { background: "var(--hf-remove-line)", paddingInlineStart: "6px" },
  ".cm-deletedChunk .cm-deletedText, .cm-deletedLine del": { background: "none", textDecoration: "none" },
  "&.cm-merge-a .cm-changedText": { background: "none" },
  "&.cm-merge-b .cm-changedText": { background: "none" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: "'⋯'" },
  "&.cm-merge-a .cm-changedLineGutter": { background: "var(--hf-remove-sign)" },
  "&.cm-merge-b .cm-changedLineGutter": { background: "var(--hf-add-sign)" },
  ".cm-collapsedLines": { background: "var(--hf-raised)", color: "var(--hf-dim)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.controlKeyword], color: "var(--hf-code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--hf-code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--hf-code-number)" },
  { tag: [tags.comment, tags.meta, tags.quote], color: "var(--hf-dim)" },
  { tag: [tags.propertyName, tags.definition(tags.variableName), tags.typeName, tags.className, tags.tagName], color: "var(--hf-code-name)" },
  { tag: tags.heading, fontWeight: "600" },
  { tag: tags.strong, fontWeight: "600" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: [tags.link, tags.url], color: "var(--hf-code-string)" },
]);

/** Return what every editor of a text has; a text with carriage returns shows them. */
export function codeExtensions(label: string, text: string): Extension[] {
  return [
    EditorView.cspNonce.of(cspNonce()),
    lineNumbers(),
    highlightSpecialChars({ addSpecialChars: UNSEEN }),
    drawSelection(),
    syntaxHighlighting(colours),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label }),
    text.includes("\r") ? EditorState.lineSeparator.of("\n") : [],
    look,
  ];
}

