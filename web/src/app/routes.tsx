/** The pages of the console: where each is, its key after `g`, and its code, which is fetched when it is first opened. */
import { IconActivity, IconFolders, IconInbox } from "@tabler/icons-react";
import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import type { Me } from "@/api/entries";

export interface PageRoute {
  /** wouter patterns; parameters reach the page by useParams. */
  paths: readonly string[];
  page: LazyExoticComponent<ComponentType>;
  /** How the page stands in the side bar; without it the page is reached from others. */
  nav?: { label: string; key: string; to: string; icon: ComponentType<{ size?: number; stroke?: number }>; badge?: "reviews" };
  isFor?: (me: Me) => boolean;
}

const isPerson = (me: Me) => me.kind === "person";

export const ROUTES: readonly PageRoute[] = [
  {
    paths: ["/"],
    page: lazy(() => import("@/features/inbox/page")),
    nav: { label: "Inbox", key: "i", to: "/", icon: IconInbox, badge: "reviews" },
    isFor: isPerson,
  },
  { paths: ["/reviews/:id", "/group/:id"], page: lazy(() => import("@/features/review/page")), isFor: isPerson },
  { paths: ["/closed"], page: lazy(() => import("@/features/review/closed")), isFor: isPerson },
  {
    paths: ["/files"],
    page: lazy(() => import("@/features/files/page")),
    nav: { label: "Files", key: "f", to: "/files", icon: IconFolders },
  },
  {
    paths: ["/activity", "/activity/:view"],
    page: lazy(() => import("@/features/activity/page")),
    nav: { label: "Activity", key: "a", to: "/activity", icon: IconActivity },
  },
];

export function routesFor(me: Me): readonly PageRoute[] {
  return ROUTES.filter((route) => route.isFor?.(me) ?? true);
}
