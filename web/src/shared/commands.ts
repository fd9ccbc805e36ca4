/** Pure: words of a shell's command line. */

/** Return a word as a POSIX shell reads it back: as it is where nothing in it is special, otherwise in single quotes. */
export function quoteWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}
