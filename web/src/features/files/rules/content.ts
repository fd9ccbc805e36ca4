/** Pure: how a file is shown: as what kind of content, in which language, with which line ends. */

export type ContentKind = "text" | "image" | "sound" | "video" | "none";

const RASTER = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"]);

/** Return how an opened file is shown. SVG, HTML and Markdown have a text, which is shown as source and never as a page. */
export function contentKind(file: { media_type: string; text?: string | null }): ContentKind {
  if (RASTER.has(file.media_type)) return "image";
  if (file.media_type.startsWith("audio/")) return "sound";
  if (file.media_type.startsWith("video/")) return "video";
  return file.text === undefined || file.text === null ? "none" : "text";
}

/** A text as an editor holds it, and what makes it the file's again. */
export interface EditorText {
  text: string;
  restore: (text: string) => string;
}

/**
 * Return a text for an editor. The server gives local files back the line ends that they had; in the store a file whose every
 * line ends in CR LF gets them back here, and any other carriage return is a character that is shown.
 */
export function editorText(text: string, kind: "local" | "store"): EditorText {
  if (!text.includes("\r")) return { text, restore: (edited) => edited };
  if (kind === "local") return { text: text.replace(/\r\n?/g, "\n"), restore: (edited) => edited };
  if (/(^|[^\r])\n|\r(?!\n)/.test(text)) return { text, restore: (edited) => edited };
  return { text: text.replace(/\r\n/g, "\n"), restore: (edited) => edited.replace(/\n/g, "\r\n") };
}

/** Return the line, from 1, of a byte of a text in UTF-8. */
export function lineOfByte(text: string, byte: number): number {
  const bytes = new TextEncoder().encode(text);
  let line = 1;
  for (let at = 0; at < Math.min(byte, bytes.length); at += 1) if (bytes[at] === 10) line += 1;
  return line;
}
