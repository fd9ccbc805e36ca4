/** Pure: the folders that a file may be sent to, by what was typed. */

export interface FolderChoice {
  id: string;
  /** null leaves the file where it is. */
  folder: string | null;
  isNew: boolean;
}

const MAX_SHOWN = 50;

/** Return what is offered for what was typed: folders that match, a new one of that name, and to leave the file. */
export function offerFolders(typed: string, shelves: readonly string[]): FolderChoice[] {
  const name = typed.trim().replace(/^\/+|\/+$/g, "");
  const part = name.toLowerCase();
  const matching = shelves.filter((shelf) => shelf.toLowerCase().includes(part));
  matching.sort((one, other) => Number(other.toLowerCase().startsWith(part)) - Number(one.toLowerCase().startsWith(part)));
  const choices: FolderChoice[] = matching.slice(0, MAX_SHOWN).map((folder) => ({ id: `folder:${folder}`, folder, isNew: false }));
  if (name !== "" && !shelves.some((shelf) => shelf.toLowerCase() === part)) choices.push({ id: "new", folder: name, isNew: true });
  if (name === "" || "leave it where it is".includes(part)) choices.push({ id: "leave", folder: null, isNew: false });
  return choices;
}
