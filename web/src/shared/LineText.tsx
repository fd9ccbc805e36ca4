/** Text from outside, shown as it is: no character of it can hide, forge or reverse what stands beside it. */
import { lineParts } from "./names";
import classes from "./shared.module.css";

/** Show a line with characters that would not be seen by their code points. */
export function LineText({ text }: { text: string }) {
  return lineParts(text).map((part, at) =>
    part.isHidden ? (
      <span key={at} className={classes.hidden}>
        {part.text}
      </span>
    ) : (
      part.text
    ),
  );
}

/** Show words of an agent, of an error or of a person, line by line; what surrounds them sets how lines break. */
export function Words({ text }: { text: string }) {
  return (
    <bdi>
      {text.split("\n").map((line, at) => (
        <span key={at}>
          {at > 0 && "\n"}
          <LineText text={line} />
        </span>
      ))}
    </bdi>
  );
}
