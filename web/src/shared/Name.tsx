import classes from "./shared.module.css";
import { displayName, splitPath } from "./names";

/** Show a file name or path from outside: isolated in direction, unseen characters escaped. The only way to show one. */
export function Name({ children, isPath = false }: { children: string; isPath?: boolean }) {
  if (!isPath) return <bdi className={classes.name}>{displayName(children)}</bdi>;
  const label = displayName(children);
  const { folder, name } = label.startsWith('"') ? { folder: "", name: label } : splitPath(label);
  return (
    <bdi className={classes.name}>
      {folder && <span className={classes.folder}>{folder}</span>}
      {name}
    </bdi>
  );
}
