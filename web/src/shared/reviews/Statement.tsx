import { lineParts } from "../names";
import classes from "./reviews.module.css";

/** Show what a review does that is no edit, in the words of the commands, with unseen characters by their code points. */
export function Statement({ text }: { text: string }) {
  return (
    <pre className={classes.statement}>
      {text.split("\n").map((line, at) => (
        <div key={at}>
          {lineParts(line).map((part, index) =>
            part.isHidden ? (
              <span key={index} className={classes.hiddenChar}>
                {part.text}
              </span>
            ) : (
              part.text
            ),
          )}
          {line === "" && "\u00a0"}
        </div>
      ))}
    </pre>
  );
}
