import { LineText } from "../LineText";
import classes from "./reviews.module.css";

/** Show what a review does that is no edit, in the words of the commands, with unseen characters by their code points. */
export function Statement({ text }: { text: string }) {
  return (
    <pre className={classes.statement}>
      {text.split("\n").map((line, at) => (
        <div key={at}>
          <LineText text={line} />
          {line === "" && "\u00a0"}
        </div>
      ))}
    </pre>
  );
}
