/** Pure: a line cut where its words differ from the other text's and where its colour changes. */
import type { DiffLine } from "./hunks";
import type { Piece } from "./words";

/** Characters of a line that have the colour of a kind of word. */
export interface ColourSpan {
  from: number;
  to: number;
  kind: string;
}

/** The coloured spans of each line of both texts, from 0. */
export interface DiffColours {
  before: readonly (readonly ColourSpan[])[];
  after: readonly (readonly ColourSpan[])[];
}

export interface Segment extends Piece {
  kind: string;
}

/** Return the spans of a line, of the text that it is part of. */
export function spansOf(line: DiffLine, colours: DiffColours | undefined): readonly ColourSpan[] {
  if (!colours) return [];
  const spans = line.kind === "remove" ? colours.before[(line.before ?? 0) - 1] : colours.after[(line.after ?? 0) - 1];
  return spans ?? [];
}

/** Return pieces of a line, each of one kind; what changed keeps the plain colour, whose contrast on its mark is known. */
export function colourPieces(pieces: readonly Piece[], spans: readonly ColourSpan[]): Segment[] {
  const segments: Segment[] = [];
  let start = 0;
  let next = 0;
  for (const piece of pieces) {
    const end = start + piece.text.length;
    let at = start;
    while (!piece.isChanged && at < end) {
      while (next < spans.length && (spans[next]?.to ?? 0) <= at) next += 1;
      const span = spans[next];
      const isIn = span !== undefined && span.from <= at;
      const to = Math.min(end, isIn ? span.to : (span?.from ?? end));
      segments.push({ text: piece.text.slice(at - start, to - start), isChanged: false, kind: isIn ? span.kind : "" });
      at = to;
    }
    if (piece.isChanged) segments.push({ ...piece, kind: "" });
    start = end;
  }
  return segments;
}
