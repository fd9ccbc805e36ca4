/** What is at a place: a file with its text, a folder, or nothing any more. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { call } from "@/api/client";
import { ApiFault } from "@/api/fault";
import { idOf, type Place } from "./rules/place";

/** A file as it was read; `hash` is what a save names. */
export interface OpenedFile {
  type: "file";
  place: Place;
  name: string;
  text: string | null;
  hash: string | null;
  sizeBytes: number;
  modifiedAt: string | null;
  media_type: string;
  encoding: string | null;
  lineEnding: string | null;
  canSave: boolean;
  access: string;
  reason: string | null;
}

export type Opened = OpenedFile | { type: "folder"; place: Place; name: string } | { type: "gone"; place: Place; name: string };

/** Read what is at a place. */
export async function open(place: Place, signal?: AbortSignal): Promise<Opened> {
  const name = nameOf(place);
  try {
    return place.kind === "local" ? await openLocal(place, signal) : await openStored(place, signal);
  } catch (error) {
    if (error instanceof ApiFault && error.code === "IS_DIRECTORY") return { type: "folder", place, name };
    if (error instanceof ApiFault && error.code === "NOT_FOUND") return { type: "gone", place, name };
    throw error;
  }
}

async function openLocal(place: Place & { kind: "local" }, signal?: AbortSignal): Promise<Opened> {
  const file = await call("open_file", { path: place.path }, signal);
  return {
    type: "file",
    place,
    name: file.name,
    text: file.text ?? null,
    hash: file.hash ?? null,
    sizeBytes: file.size_bytes,
    modifiedAt: file.modified_at,
    media_type: file.media_type,
    encoding: file.encoding ?? null,
    lineEnding: file.line_ending ?? null,
    canSave: file.can_save,
    access: file.access,
    reason: file.reason ?? null,
  };
}

async function openStored(place: Place & { kind: "store" }, signal?: AbortSignal): Promise<Opened> {
  if (place.path === "") return { type: "folder", place, name: place.project };
  const file = await call("open_stored_file", { project: place.project, path: place.path }, signal);
  return {
    type: "file",
    place,
    name: nameOf(place),
    text: file.text,
    hash: file.hash,
    sizeBytes: file.size_bytes,
    modifiedAt: file.modified_at ?? null,
    media_type: "text/plain",
    encoding: "utf-8",
    lineEnding: null,
    canSave: true,
    access: "allow",
    reason: null,
  };
}

export function useOpened(place: Place): UseQueryResult<Opened> {
  return useQuery<Opened>({
    queryKey: [place.kind === "local" ? "files" : "store", "opened", idOf(place)],
    queryFn: ({ signal }) => open(place, signal),
    staleTime: 0,
  });
}

/** Return the last part of a place's path, decoded where it is a URI as far as it is text. */
export function nameOf(place: Place): string {
  if (place.kind === "store" && place.path === "") return place.project;
  const last = place.path.slice(place.path.lastIndexOf("/") + 1);
  if (place.kind === "store" || !place.path.startsWith("file://")) return last || place.path;
  const bytes = Uint8Array.from(
    last.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    (char) => char.charCodeAt(0),
  );
  return new TextDecoder().decode(bytes);
}
