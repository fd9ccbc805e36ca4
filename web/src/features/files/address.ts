/** What the page's address holds after `?`, as it is: wouter's own hook decodes it twice, which changes names with a `%`. */
import { useCallback, useMemo } from "react";
import { navigate, useLocationProperty } from "wouter/use-browser-location";

export type Change = Record<string, string | null>;

/** Return the parameters of the address, and a function that changes some: null or an empty text removes one. */
export function useAddress(): [URLSearchParams, (change: Change, isNew?: boolean) => void] {
  const search = useLocationProperty(() => globalThis.location.search);
  const params = useMemo(() => new URLSearchParams(search), [search]);
  const go = useCallback((change: Change, isNew = false) => {
    const after = new URLSearchParams(globalThis.location.search);
    for (const [name, value] of Object.entries(change)) {
      if (value === null || value === "") after.delete(name);
      else after.set(name, value);
    }
    navigate(`${globalThis.location.pathname}?${after.toString()}`, { replace: !isNew });
  }, []);
  return [params, go];
}
