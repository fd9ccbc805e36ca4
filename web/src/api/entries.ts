/** Names for the answers that several pages use; the types are those of the server's own document. */
import type { DataOf } from "./client";
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Me = Schemas["Me"];

/** What a review says of itself in a list, and who proposed it. */
export type PendingReview = DataOf<"pending_reviews">["reviews"][number];
export type ClosedReview = DataOf<"closed_reviews">["reviews"][number];
export type ShownReview = DataOf<"show_review">;
export type ShownHunk = ShownReview["hunks"][number];
export type ListedChange = DataOf<"all_changes">["changes"][number];
export type PlanLine = DataOf<"all_plans">["plans"][number];
