import { useAreKeysOn } from "./keys";
import classes from "./shared.module.css";

/** The key of a button, where there is a keyboard and single keys are on; not part of the button's name. */
export function KeyHint({ children }: { children: string }) {
  if (!useAreKeysOn()) return null;
  return (
    <span className={classes.keyHint} aria-hidden>
      {children}
    </span>
  );
}
