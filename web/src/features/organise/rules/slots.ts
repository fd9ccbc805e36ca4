/** Pure: which pages of a plan's rows are read. */

/** One page of the rows of a folder, or of the whole list for null. */
export interface Slot {
  folder: string | null;
  page: number;
}

/** Return what to read of what was in view last: one list has its first page always, whatever folders were open before. */
export function slotsToRead(shown: readonly Slot[], isFlat: boolean): readonly Slot[] {
  if (!isFlat) return shown.filter((slot) => slot.folder !== null);
  return [{ folder: null, page: 0 }, ...shown.filter((slot) => slot.folder === null && slot.page > 0)];
}
