/** What is always there: header, pages in a side bar (a bottom bar on a phone), palette, keys, and the news of the server. */
import { ActionIcon, Anchor, Menu, Tooltip, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconDeviceDesktop, IconKeyboard, IconLogout, IconMoon, IconSearch, IconSun } from "@tabler/icons-react";
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { Suspense, useEffect, useMemo, useState } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { request, type DataOf } from "@/api/client";
import type { Connection } from "@/api/events";
import { applyEvent, useConnection, useEntry, useEvents, useMe, useServerEvent } from "@/api/hooks";
import { forgetSession } from "@/api/session";
import { dropAllDrafts } from "@/shared/drafts";
import { listenToKeys, useKeys, type KeyAction } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { Empty, Loading } from "@/shared/states";
import { displayName, shortenHome, splitPath } from "@/shared/names";
import { showUndo, undoNewest } from "@/shared/toasts";
import { useUndo } from "@/shared/undo";
import classes from "./app.module.css";
import { Boundary } from "./boundary";
import { KeyMap } from "./key_map";
import { notifyOfReview } from "@/shared/notify";
import { Palette } from "./palette";
import { routesFor } from "./routes";

const IS_MAC = navigator.userAgent.includes("Mac");
const PALETTE_KEYS = IS_MAC ? "⌘ K" : "Ctrl K";

const WORDS: Record<Connection, string> = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  "signed-out": "Signed out",
};

export function Shell() {
  const me = useMe();
  const [location, navigate] = useLocation();
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [isMapOpen, setMapOpen] = useState(false);
  const routes = useMemo(() => routesFor(me), [me]);
  const home = routes.find(({ nav }) => nav)?.nav?.to ?? "/";
  const waiting = useWaitingCount();
  useNews();
  useEffect(listenToKeys, []);
  useHotkeys([["mod+K", () => setPaletteOpen(true)]], []);
  const shellKeys = useMemo<KeyAction[]>(() => {
    const pages = routes.flatMap(({ nav }) =>
      nav ? [{ keys: `g ${nav.key}`, label: `Go to ${nav.label}`, run: () => navigate(nav.to) }] : [],
    );
    return [
      ...pages,
      { keys: "z", label: "Undo what the toast offers", run: () => undoNewest(), isMotion: true },
      { keys: "?", label: "Show the keys", run: () => setMapOpen(true) },
    ];
  }, [routes, navigate]);
  useKeys("Console", shellKeys);

  return (
    <div className={classes.shell}>
      <a href="#main" className={classes.skip}>
        Skip to the page
      </a>
      <Header onPalette={() => setPaletteOpen(true)} onMap={() => setMapOpen(true)} />
      <nav className={classes.nav} aria-label="Pages">
        {routes.map(({ nav, paths }) => {
          if (!nav) return null;
          const isHere = nav.to === "/" ? !isUnderOther(location, routes) : location.startsWith(nav.to);
          const Icon = nav.icon;
          const badge = nav.badge === "reviews" ? waiting : 0;
          return (
            <Link key={paths[0]} to={nav.to} className={classes.navItem ?? ""} aria-current={isHere ? "page" : undefined}>
              <Icon size={18} stroke={1.6} />
              <span className={classes.navLabel}>{nav.label}</span>
              {badge > 0 && (
                <span className={classes.badge}>
                  {badge}
                  <span className="hf-visually-hidden"> waiting</span>
                </span>
              )}
            </Link>
          );
        })}
      </nav>
      <main id="main" className={classes.main} tabIndex={-1}>
        <Boundary key={location}>
          <Suspense fallback={<Loading />}>
            <Switch>
              {home !== "/" && (
                <Route path="/">
                  <Redirect to={home} replace />
                </Route>
              )}
              {routes.flatMap((route) => route.paths.map((path) => <Route key={path} path={path} component={route.page} />))}
              <Route>
                <div className={classes.page}>
                  <Empty title="There is no such page.">The address may be of another version.</Empty>
                </div>
              </Route>
            </Switch>
          </Suspense>
        </Boundary>
      </main>
      <Palette isOpen={isPaletteOpen} onClose={() => setPaletteOpen(false)} />
      <KeyMap isOpen={isMapOpen} onClose={() => setMapOpen(false)} />
    </div>
  );
}

function isUnderOther(location: string, routes: ReturnType<typeof routesFor>): boolean {
  return routes.some(({ nav }) => nav && nav.to !== "/" && location.startsWith(nav.to));
}

/** Return how many reviews and plans wait for the person; the tab's title says it too. */
function useWaitingCount(): number {
  const me = useMe();
  const pending = useEntry("reviews", "pending_reviews", {}, { enabled: me.kind === "person" });
  const plans = useEntry("plans", "all_plans", {}, { enabled: me.kind === "person" });
  const reviewCount = pending.data?.reviews.filter((review) => review.user_action === "PENDING").length ?? 0;
  const count = reviewCount + (plans.data?.plans.filter((plan) => plan.status === "CREATED").length ?? 0);
  useEffect(() => {
    document.title = count > 0 ? `(${count}) Holdfast` : "Holdfast";
  }, [count]);
  return count;
}

/** Return the path of a review that a list of this page still knows. */
function pathOf(client: QueryClient, reviewId: string): string {
  const pending = client.getQueryData<DataOf<"pending_reviews">>(["reviews", "pending_reviews", {}]);
  return pending?.reviews.find((review) => review.review_id === reviewId)?.path ?? "";
}

function Applied({ path }: { path: string }) {
  return (
    <>
      Done{path && ": "}
      {path && <Name>{splitPath(path).name}</Name>}
    </>
  );
}

function useNews(): void {
  const client = useQueryClient();
  const undo = useUndo();
  useServerEvent((event) => {
    if (event.name === "review.applied" && !document.hidden) {
      const changeId = String(event.data["change_id"]);
      showUndo(<Applied path={pathOf(client, String(event.data["review_id"]))} />, "Put back what was there before", () => undo(changeId), changeId);
    }
    if (event.name === "review.opened" && event.isLeader) void notifyOfReview(String(event.data["review_id"]));
    applyEvent(client, event);
  });
}

function Header({ onPalette, onMap }: { onPalette: () => void; onMap: () => void }) {
  const me = useMe();
  return (
    <header className={classes.header}>
      <Link href="/" className={classes.mark ?? ""} aria-label={me.kind === "person" ? "Holdfast, Inbox" : "Holdfast, Files"}>
        <img src="/favicon.svg" width={20} height={20} alt="" />
        <span>Holdfast</span>
      </Link>
      <Place />
      <span className={classes.spring} />
      <UnstyledButton className={classes.search} aria-label={`Go to… ${PALETTE_KEYS}`} onClick={onPalette}>
        <IconSearch size={14} />
        <span className={classes.searchText}>Go to…</span>
        <span className={classes.searchKeys}>{PALETTE_KEYS}</span>
      </UnstyledButton>
      <ConnectionWord />
      <ThemeMenu />
      <Tooltip label="Keys">
        <ActionIcon variant="subtle" color="gray" aria-label="Keys" onClick={onMap} className={classes.wide ?? ""}>
          <IconKeyboard size={18} stroke={1.6} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={`Sign out (${me.identity})`}>
        <ActionIcon variant="subtle" color="gray" aria-label="Sign out" onClick={() => void signOut()}>
          <IconLogout size={18} stroke={1.6} />
        </ActionIcon>
      </Tooltip>
    </header>
  );
}

/** Say which directories, or which tenant, this console is about. */
function Place() {
  const me = useMe();
  if (me.kind === "tenant") return <span className={classes.place}>{me.identity}</span>;
  const [first, ...others] = me.roots;
  if (!first) return <span className={classes.place} />;
  return (
    <span className={classes.place} title={me.roots.map(displayName).join("\n")}>
      <Name isPath>{shortenHome(first, me.home)}</Name>
      {others.length > 0 && <span className={classes.more}> and {others.length} more</span>}
    </span>
  );
}

function ConnectionWord() {
  const connection = useConnection();
  const me = useMe();
  const events = useEvents();
  const isLive = connection === "live";
  const hasNewer = isLive && events.version !== "" && events.version !== me.version;
  const word = isLive && me.read_only ? "Read-only" : WORDS[connection];
  return (
    <span className={classes.connection} data-state={connection} role="status">
      <span className={classes.dot} aria-hidden />
      {hasNewer ? (
        <Anchor component="button" size="sm" onClick={() => globalThis.location.reload()}>
          New version: reload
        </Anchor>
      ) : (
        <span>{word}</span>
      )}
    </span>
  );
}

function ThemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const options = [
    { value: "auto", label: "System", icon: IconDeviceDesktop },
    { value: "light", label: "Light", icon: IconSun },
    { value: "dark", label: "Dark", icon: IconMoon },
  ] as const;
  const Current = options.find((option) => option.value === colorScheme)?.icon ?? IconDeviceDesktop;
  return (
    <Menu position="bottom-end" width={160}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Theme: ${colorScheme === "auto" ? "system" : colorScheme}`}>
          <Current size={18} stroke={1.6} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {options.map(({ value, label, icon: Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={16} stroke={1.6} />}
            aria-current={value === colorScheme}
            onClick={() => setColorScheme(value)}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

async function signOut(): Promise<void> {
  await request("/api/session", { method: "DELETE" }).catch(() => undefined);
  dropAllDrafts();
  forgetSession();
  globalThis.location.assign("/");
}
