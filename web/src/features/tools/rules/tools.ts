/** Pure: the list of tools by group, and what a call of one is as a command. */
import { quoteWord } from "@/shared/commands";
import type { components } from "@/api/schema";

export type ToolFacts = components["schemas"]["ToolFacts"];

export interface ToolGroup {
  title: string;
  tools: ToolFacts[];
}

export const EFFECTS: Record<ToolFacts["effect"], string> = {
  read: "changes nothing",
  add: "adds something",
  change: "changes something",
  destroy: "changes or removes something",
};

/** Groups whose tools work in directories of this machine. */
const LOCAL_GROUPS: readonly string[] = ["files", "review", "organise", "search"];

/** Return the tools whose name or title holds every word that was typed, in groups: the agents' first. */
export function groupTools(tools: readonly ToolFacts[], typed: string, whose: string): ToolGroup[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<string, ToolGroup>();
  for (const audience of ["agent", "person"] as const) {
    for (const tool of tools) {
      if (tool.audience !== audience || (whose !== "all" && tool.audience !== whose)) continue;
      const text = `${tool.name} ${tool.title} ${tool.group}`.toLowerCase();
      if (!words.every((word) => text.includes(word))) continue;
      const title = audience === "agent" ? tool.group : `${tool.group}, yours alone`;
      const group = groups.get(title) ?? { title, tools: [] };
      group.tools.push(tool);
      groups.set(title, group);
    }
  }
  return [...groups.values()];
}

/** Return the command that makes the same call; the tools of agents need to be told the directories. */
export function commandOf(tool: ToolFacts, text: string, roots: readonly string[]): string {
  const isLocal = tool.audience === "agent" && (LOCAL_GROUPS.includes(tool.group) || tool.name === "mcp_pipe");
  const words = ["holdfast", "call", tool.name, ...(isLocal ? roots.flatMap((root) => ["--dir", quoteWord(root)]) : [])];
  let compact: string;
  try {
    JSON.parse(text);
    compact = stripBlanks(text);
  } catch {
    compact = text;
  }
  return compact === "{}" ? words.join(" ") : [...words, "--json", quoteWord(compact)].join(" ");
}

/** Return a JSON text on one line; only the blanks between its tokens go, so that every number stays as it was written. */
function stripBlanks(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? part : ""));
}

/** Return whether a server in read-only mode refuses the tool. */
export function isRefusedReadOnly(tool: ToolFacts): boolean {
  return tool.effect !== "read" && LOCAL_GROUPS.includes(tool.group);
}
