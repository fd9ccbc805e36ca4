/** The browser's notification of a review that waits: the file's name and nothing else, and only while the tab is hidden. */
import { navigate } from "wouter/use-browser-location";
import { call } from "@/api/client";
import { displayName, splitPath } from "@/shared/names";
import { askInToast } from "@/shared/toasts";

const STORED = "holdfast.notifications";

export type NotificationChoice = "on" | "off" | "unasked";

export function notificationChoice(): NotificationChoice {
  const stored = localStorage.getItem(STORED);
  return stored === "on" || stored === "off" ? stored : "unasked";
}

/** Ask the browser, from a click; return whether it allows. */
export async function turnNotificationsOn(): Promise<boolean> {
  const isAllowed = (await Notification.requestPermission()) === "granted";
  localStorage.setItem(STORED, isAllowed ? "on" : "off");
  return isAllowed;
}

export function turnNotificationsOff(): void {
  localStorage.setItem(STORED, "off");
}

/** Offer notifications once, after the first decision: then the reader knows what they would be told. */
export function offerNotifications(): void {
  if (notificationChoice() !== "unasked" || !("Notification" in window)) return;
  if (Notification.permission === "denied") return;
  askInToast(
    "notifications",
    "Tell you when something waits while this tab is hidden?",
    "Yes",
    () => void turnNotificationsOn(),
    "No",
    turnNotificationsOff,
  );
}

export async function notifyOfReview(reviewId: string): Promise<void> {
  if (!document.hidden || notificationChoice() !== "on" || Notification.permission !== "granted") return;
  const { reviews } = await call("pending_reviews", {});
  const review = reviews.find((each) => each.review_id === reviewId);
  if (!review) return;
  const notification = new Notification("Waits for you", { body: displayName(splitPath(review.path).name), tag: reviewId, icon: "/favicon.svg" });
  notification.onclick = () => {
    window.focus();
    navigate(`/reviews/${reviewId}`);
    notification.close();
  };
}
