import classes from "./reviews.module.css";

/** Show how many lines were added and removed, by sign and colour. */
export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className={classes.counts}>
      <span className={classes.added}>
        +{added.toLocaleString("en-US")}
        <span className="hf-visually-hidden"> lines added</span>
      </span>{" "}
      <span className={classes.removed}>
        −{removed.toLocaleString("en-US")}
        <span className="hf-visually-hidden"> lines removed</span>
      </span>
    </span>
  );
}
