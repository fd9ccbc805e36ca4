import { useMe } from "@/api/hooks";
import { Name } from "./Name";
import { displayName, placeOf, shortenHome } from "./names";

/** Show a folder as the person knows it, with its whole path on hover. */
export function Place({ folder }: { folder: string }) {
  const { roots, home } = useMe();
  return (
    <span title={displayName(folder)}>
      <Name>{placeOf(folder, roots, home)}</Name>
    </span>
  );
}

/** Show a path from the root on, with `~` for the home folder. */
export function WholePath({ path }: { path: string }) {
  const { home } = useMe();
  return (
    <span title={displayName(path)}>
      <Name>{shortenHome(path, home)}</Name>
    </span>
  );
}
