/** Pure: what a client that speaks HTTP needs, and the command that installs another. */
import { quoteWord } from "@/shared/commands";

/** Return the entry of a client for the HTTP door; the key is never part of the page. */
export function httpSnippet(origin: string, key: string): string {
  const entry = { type: "http", url: `${origin}/mcp`, headers: { Authorization: `Bearer ${key}` } };
  return JSON.stringify({ mcpServers: { holdfast: entry } }, null, 2);
}

/** Return the command that writes a client's configuration. */
export function installCommand(client: string, folders: readonly string[]): string {
  const words = client === "other" ? ["--print"] : [client];
  return ["holdfast", "install", ...words, ...folders.map(quoteWord)].join(" ");
}
