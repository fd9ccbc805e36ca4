/** Pure: what is read out of an answer: its blocks, their estimated tokens, the changes that it made. */
import { isRecord, type ApiFault } from "@/api/fault";
import type { EntryAnswer } from "@/api/client";

export interface Block {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  resource?: { uri?: string; mimeType?: string; blob?: string; text?: string };
}

/** Return the estimated tokens of a text, by the server's own rule: four ASCII characters are one, any other is one. */
export function estimateTokens(text: string): number {
  let ascii = 0;
  let others = 0;
  for (const char of text) {
    if (char <= "\u007f") ascii += 1;
    else others += 1;
  }
  return Math.ceil(ascii / 4) + others;
}

/** Return the estimated tokens of the texts of an answer; what media cost depends on the model. */
export function tokensOf(blocks: readonly Block[]): number {
  return blocks.reduce((sum, block) => sum + estimateTokens(block.text ?? ""), 0);
}

export function blocksOf(answer: EntryAnswer<unknown>): Block[] {
  return answer.content as Block[];
}

/** Return the one block that an agent is given of an error: the error as JSON, just as it comes over the protocol. */
export function blocksOfFault(fault: ApiFault): Block[] {
  const { code, message, retryable, details } = fault;
  return [{ type: "text", text: JSON.stringify({ code, message, retryable, ...details }) }];
}

/** Return how many bytes a base64 text stands for. */
export function bytesOf(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

const LAST_LINE = /(?:^|\n)change ([0-9a-f]{32})\s*$/;

/**
 * Return the changes that a call made, in their order: of an undo the undo itself, so that it can be taken back. A tool that
 * answers text names its change in the last line; no other line counts, because it may be a file's.
 */
export function changesOf(answer: EntryAnswer<unknown>): string[] {
  const data = answer.data;
  if (isRecord(data)) {
    const own = data["undo_id"] ?? data["restore_id"] ?? data["change_id"];
    if (typeof own === "string") return [own];
    const files = Array.isArray(data["files"]) ? (data["files"] as unknown[]) : [];
    const ids = files.map((file) => (isRecord(file) ? file["change_id"] : undefined)).filter((id) => typeof id === "string");
    if (ids.length > 0) return ids;
  }
  const ids = answer.text.map((text) => LAST_LINE.exec(text)?.[1]).filter((id) => id !== undefined);
  return ids.slice(-1);
}
