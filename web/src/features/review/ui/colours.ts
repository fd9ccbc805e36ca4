/** The colours of a review's texts. */
import { useEffect, useState } from "react";
import { languageOf } from "@/shared/code/languages";
import type { DiffColours } from "@/shared/diff/colours";

const MAX_COLOURED = 300_000;

interface ReviewTexts {
  path: string;
  before: string;
  after: string;
}

/** Return the colours of both texts, once they are worked out; none of a text that is too long for it to be quick. */
export function useColours(review: ReviewTexts | undefined): DiffColours | undefined {
  const [colours, setColours] = useState<DiffColours>();
  useEffect(() => {
    if (!review) return;
    const { before, after, path } = review;
    const language = languageOf(path, Math.max(before.length, after.length));
    if (!language || before.length + after.length > MAX_COLOURED) return;
    let isCurrent = true;
    void import("@/shared/code/colours")
      .then(async ({ colourLines }) => ({ before: await colourLines(before, language), after: await colourLines(after, language) }))
      .then((both) => {
        if (isCurrent) setColours(both);
      })
      .catch(() => undefined); // the text is shown without colours
    return () => {
      isCurrent = false;
    };
  }, [review]);
  return colours;
}
