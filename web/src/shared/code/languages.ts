/** The languages that texts are coloured in, each loaded when it is wanted. */
import type { LanguageSupport } from "@codemirror/language";

export type Language = "json" | "yaml" | "python" | "javascript" | "typescript" | "jsx" | "tsx" | "markdown";

const LANGUAGES: Record<string, Language> = {
  json: "json", jsonc: "json", ipynb: "json", webmanifest: "json", geojson: "json",
  yaml: "yaml", yml: "yaml",
  py: "python", pyi: "python",
  js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "jsx",
  ts: "typescript", mts: "typescript", cts: "typescript", tsx: "tsx",
  md: "markdown", markdown: "markdown",
};
const MAX_HIGHLIGHTED = 2_000_000;

/** Return the language of a name; none for a text that is too large to be coloured quickly. */
export function languageOf(name: string, length: number): Language | null {
  if (length > MAX_HIGHLIGHTED) return null;
  return LANGUAGES[/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? ""] ?? null;
}

/** Load what reads a language. */
export async function support(language: Language): Promise<LanguageSupport> {
  switch (language) {
    case "json":
      return (await import("@codemirror/lang-json")).json();
    case "yaml":
      return (await import("@codemirror/lang-yaml")).yaml();
    case "python":
      return (await import("@codemirror/lang-python")).python();
    case "markdown":
      return (await import("@codemirror/lang-markdown")).markdown();
    default: {
      const { javascript } = await import("@codemirror/lang-javascript");
      return javascript({ typescript: language.startsWith("ts") || language === "typescript", jsx: language.endsWith("x") });
    }
  }
}
