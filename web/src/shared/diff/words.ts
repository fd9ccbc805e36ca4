/** Pure: which words of two lines differ. */

export interface Piece {
  text: string;
  isChanged: boolean;
}

const TOKENS = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;
const MAX_TOKENS = 160;
const MIN_ALIKE = 0.35;

/** Return a line in pieces against another; null when they are too different for marks to help. */
export function markWords(line: string, other: string): Piece[] | null {
  if (line === other || line.length > 2000 || other.length > 2000) return null;
  const left: string[] = line.match(TOKENS) ?? [];
  const right: string[] = other.match(TOKENS) ?? [];
  const common = commonTokens(left, right);
  let alike = 0;
  left.forEach((token, at) => {
    if (common[at]) alike += token.trim().length;
  });
  if (alike < MIN_ALIKE * Math.max(line.trim().length, other.trim().length)) return null;
  const pieces: Piece[] = [];
  left.forEach((text, at) => {
    const isChanged = !common[at];
    const last = pieces.at(-1);
    if (last?.isChanged === isChanged) last.text += text;
    else pieces.push({ text, isChanged });
  });
  return pieces;
}

/** Return for each token of `left` whether it is part of what both have in common, in order. */
function commonTokens(left: readonly string[], right: readonly string[]): boolean[] {
  const common = new Array<boolean>(left.length).fill(false);
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) common[head++] = true;
  let tail = 0;
  while (
    tail < left.length - head &&
    tail < right.length - head &&
    left[left.length - 1 - tail] === right[right.length - 1 - tail]
  ) {
    tail += 1;
    common[left.length - tail] = true;
  }
  const rows = left.length - head - tail;
  const columns = right.length - head - tail;
  if (rows === 0 || columns === 0 || rows > MAX_TOKENS || columns > MAX_TOKENS) return common;
  const width = columns + 1;
  const lengths = new Uint16Array((rows + 1) * width);
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      lengths[row * width + column] =
        left[head + row] === right[head + column]
          ? (lengths[(row + 1) * width + column + 1] ?? 0) + 1
          : Math.max(lengths[(row + 1) * width + column] ?? 0, lengths[row * width + column + 1] ?? 0);
    }
  }
  for (let row = 0, column = 0; row < rows && column < columns; ) {
    if (left[head + row] === right[head + column]) {
      common[head + row] = true;
      row += 1;
      column += 1;
    } else if ((lengths[(row + 1) * width + column] ?? 0) >= (lengths[row * width + column + 1] ?? 0)) row += 1;
    else column += 1;
  }
  return common;
}
