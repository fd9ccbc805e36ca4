/** A tool as the function declaration of a model's API, as the server writes it, to be copied. */
import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { getJson } from "@/api/client";
import { CopyButton, Fault, Loading } from "@/shared/states";
import { writeJson } from "../rules/json_text";
import classes from "../tools.module.css";
import { PlainText } from "./data_view";

const FORMS = [
  { value: "mcp", label: "MCP" },
  { value: "openai", label: "OpenAI" },
  { value: "gemini", label: "Gemini" },
];

export function Declarations({ tool }: { tool: string }) {
  const [isOpen, setOpen] = useState(false);
  const [form, setForm] = useState("mcp");
  const declaration = useQuery({
    queryKey: ["tools", "declaration", tool, form],
    queryFn: ({ signal }) => getJson<unknown>(`/api/tools/${encodeURIComponent(tool)}?as=${form}`, signal),
    enabled: isOpen,
  });
  const label = FORMS.find((each) => each.value === form)?.label ?? "";
  return (
    <details className={classes.declarations} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Declaration for a model&apos;s API</summary>
      <div className={classes.resultHead}>
        <SegmentedControl size="xs" data={FORMS} value={form} onChange={setForm} aria-label="Declaration for" />
        {declaration.isSuccess && <CopyButton text={writeJson(declaration.data)} label={`Copy the ${label} declaration`} />}
      </div>
      {declaration.isError && <Fault error={declaration.error} onRetry={() => void declaration.refetch()} />}
      {declaration.isPending && isOpen && <Loading rows={4} label="Loading the declaration" />}
      {declaration.isSuccess && <PlainText text={writeJson(declaration.data)} label={`${label} declaration`} />}
    </details>
  );
}
