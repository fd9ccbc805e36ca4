/** The colours of a text by its language, line by line, for views that are no editor. */
import { highlightTree, tagHighlighter, tags } from "@lezer/highlight";
import type { ColourSpan } from "../diff/colours";
import { support, type Language } from "./languages";

const HIGHLIGHTER = tagHighlighter([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.controlKeyword], class: "keyword" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp, tags.link, tags.url], class: "string" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], class: "number" },
  { tag: [tags.comment, tags.meta, tags.quote], class: "comment" },
  { tag: [tags.propertyName, tags.definition(tags.variableName), tags.typeName, tags.className, tags.tagName, tags.heading], class: "name" },
]);

/** Return the coloured spans of each line of a text, from 0. */
export async function colourLines(text: string, language: Language): Promise<readonly (readonly ColourSpan[])[]> {
  const { parser } = (await support(language)).language;
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const lines: ColourSpan[][] = starts.map(() => []);
  let line = 0;
  highlightTree(parser.parse(text), HIGHLIGHTER, (from, to, kind) => {
    while (line + 1 < starts.length && (starts[line + 1] ?? Infinity) <= from) line += 1;
    for (let at = line; at < starts.length && (starts[at] ?? 0) < to; at += 1) {
      const start = starts[at] ?? 0;
      const end = (starts[at + 1] ?? text.length + 1) - 1;
      const [first, last] = [Math.max(from, start) - start, Math.min(to, end) - start];
      if (last > first) lines[at]?.push({ from: first, to: last, kind });
    }
  });
  return lines;
}
