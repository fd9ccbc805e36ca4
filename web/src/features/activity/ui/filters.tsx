/** The filters of a list, which live in the address. */
import { NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "wouter";
import classes from "../activity.module.css";

/** Return the address's filters, and what sets one; an empty value takes it away. */
export function useFilters(): [URLSearchParams, (name: string, value: string) => void] {
  const [query, setQuery] = useSearchParams();
  const set = (name: string, value: string) =>
    setQuery(
      (old) => {
        const next = new URLSearchParams(old);
        if (value === "") next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return [query, set];
}

export function FilterSelect(props: { name: string; label: string; options: readonly { value: string; label: string }[]; fallback?: string }) {
  const [query, set] = useFilters();
  const { name, label, options, fallback = "" } = props;
  return (
    <NativeSelect
      size="xs"
      aria-label={label}
      className={classes.filter ?? ""}
      data={[...options]}
      value={query.get(name) ?? fallback}
      onChange={(event) => set(name, event.currentTarget.value === fallback ? "" : event.currentTarget.value)}
    />
  );
}

/** A filter that is typed; it holds when the field is left or Enter is pressed. */
export function FilterText({ name, label, id }: { name: string; label: string; id?: string }) {
  const [query, set] = useFilters();
  const [typed, setTyped] = useState(query.get(name) ?? "");
  const commit = () => set(name, typed.trim());
  return (
    <TextInput
      size="xs"
      {...(id ? { id } : {})}
      aria-label={label}
      placeholder={label}
      className={classes.filter ?? ""}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        if (event.currentTarget.value === "") set(name, "");
      }}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
        if (event.key === "Escape") event.currentTarget.blur();
      }}
    />
  );
}
