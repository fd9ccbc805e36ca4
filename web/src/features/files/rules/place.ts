/** Pure: where something is: a path on this machine, or a path in a project of the store; and how an address names it. */

export type Place = { kind: "local"; path: string } | { kind: "store"; project: string; path: string };

const URI = "file://";

/** Return the place that the page's address names: `?at=/home/me/a.md` or `?project=notes&at=/a.md`. */
export function placeOf(params: URLSearchParams): Place | null {
  const at = params.get("at") ?? "";
  const project = params.get("project");
  if (project) return { kind: "store", project, path: at };
  return at.startsWith("/") || at.startsWith(`${URI}/`) ? { kind: "local", path: at } : null;
}

/** Return what names a place in an address. */
export function paramsOf(place: Place): Record<string, string> {
  return place.kind === "local" ? { at: place.path } : { project: place.project, at: place.path };
}

/** Return one text for a place; no two places have the same. */
export function idOf(place: Place): string {
  return place.kind === "local" ? place.path : `store:${place.project}:${place.path}`;
}

/** Return the folder that holds a place; of a root, or of a project, the place itself. */
export function parentOf(place: Place): Place {
  const slash = place.path.lastIndexOf("/");
  if (place.kind === "store") return { ...place, path: place.path.slice(0, Math.max(0, slash)) };
  const isUri = place.path.startsWith(URI);
  const path = place.path.slice(0, Math.max(slash, isUri ? URI.length : 0)) || "/";
  if (!isUri) return { kind: "local", path };
  const decoded = tryDecode(path.slice(URI.length));
  return { kind: "local", path: decoded ?? path };
}

/** Return the place of a new entry in a folder. */
export function childOf(folder: Place, name: string): Place {
  const isUri = folder.kind === "local" && folder.path.startsWith(URI);
  const path = `${folder.path.replace(/\/$/, "")}/${isUri ? encodeURIComponent(name) : name}`;
  return folder.kind === "local" ? { kind: "local", path } : { ...folder, path };
}

/** Return the folders from a root or project down to the one that holds a place, the outermost first. */
export function ancestorsOf(place: Place, root: string): Place[] {
  const folders: Place[] = [];
  for (let at = place; at.path !== root; ) {
    const above = parentOf(at);
    if (above.path === at.path) return [];
    folders.unshift(above);
    at = above;
  }
  return folders;
}

/** Return the decoded path of a URI, null where a name in it is not UTF-8 or one of its own characters was escaped. */
function tryDecode(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}
