/** Pure: edits of the list of rules, and what a rule says in words. */
import type { ArgumentsOf, DataOf } from "@/api/client";

export type Rule = Required<NonNullable<ArgumentsOf<"change_policy">["rules"]>[number]>;
export type Access = Rule["access"];
export type PolicyAnswer = DataOf<"policy_rules">;

export const ACCESS: readonly { value: Access; label: string; says: string }[] = [
  { value: "deny", label: "deny", says: "does not exist for agents" },
  { value: "read-only", label: "read-only", says: "can be read and not changed" },
  { value: "review", label: "review", says: "each change waits for you" },
  { value: "allow", label: "allow", says: "no rule: another one that matches still holds" },
];

export const NEW_RULE: Rule = { access: "review", root: "", glob: "", client: "" };

/** Return a rule of the server with every member there. */
export function fullRule(rule: Partial<Rule> & { access: Access }): Rule {
  return { access: rule.access, root: rule.root ?? "", glob: rule.glob ?? "", client: rule.client ?? "" };
}

/** Return what a rule is for, in a sentence's end: `src/** in each allowed directory, for every client`. */
export function scopeOf(rule: Rule): string {
  const root = rule.root === "" ? "each allowed directory" : rule.root;
  const what = rule.glob === "" ? `all of ${root}` : `${rule.glob} in ${root}`;
  return `${what}, for ${rule.client === "" ? "every client" : `clients ${rule.client}`}`;
}

/** Return the list with a rule moved by some places; the same list at its ends. */
export function moved(rules: readonly Rule[], at: number, by: number): Rule[] {
  const to = at + by;
  const next = [...rules];
  const [rule] = next.splice(at, 1);
  if (!rule || to < 0 || to >= rules.length) return [...rules];
  next.splice(to, 0, rule);
  return next;
}

/** Return whether two lists say the same. */
export function areSame(a: readonly Rule[], b: readonly Rule[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Return why a rule cannot be meant, by member; the server has the last word. */
export function faultsOf(rule: Rule): Partial<Record<keyof Rule, string>> {
  const faults: Partial<Record<keyof Rule, string>> = {};
  if (rule.root !== "" && !rule.root.startsWith("/") && !rule.root.startsWith("~")) faults.root = "Absolute, or beginning with ~.";
  if (rule.glob.startsWith("!")) faults.glob = "No ! here: the strictest rule wins, so name the rest.";
  else if (rule.glob !== "" && (rule.glob.replace(/\//g, "") === "" || rule.glob.split("/").includes(".."))) faults.glob = "It matches no path beneath a directory.";
  return faults;
}
