import { QueryClientProvider } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { getJson, onSignedOut } from "@/api/client";
import type { Me } from "@/api/entries";
import { Events } from "@/api/events";
import { ApiFault } from "@/api/fault";
import { EventsContext, makeQueryClient, MeContext } from "@/api/hooks";
import { openSession, sessionKey, takeLinkToken, watchSession } from "@/api/session";
import { setDraftOwner } from "@/shared/drafts";
import { Loading } from "@/shared/states";
import { Shell } from "./shell";
import { SignedOut } from "./signed_out";

type Session = { state: "unknown" } | { state: "out"; error: unknown } | { state: "in"; me: Me };

const linkToken = takeLinkToken();

/** Sign in by the link's token when there is one, otherwise by the session that this browser has. */
async function findSession(): Promise<Session> {
  try {
    if (linkToken) return { state: "in", me: await openSession({ link: linkToken }) };
    if (!sessionKey()) return { state: "out", error: null };
    return { state: "in", me: await getJson<Me>("/api/me") };
  } catch (error) {
    const isPlainlyOut = error instanceof ApiFault && error.status === 401 && !linkToken;
    return { state: "out", error: isPlainlyOut ? null : error };
  }
}

export function App() {
  const [session, setSession] = useState<Session>({ state: "unknown" });
  useEffect(() => {
    let isCurrent = true;
    void findSession().then((found) => {
      if (isCurrent) setSession(found);
    });
    return () => {
      isCurrent = false;
    };
  }, []);
  useEffect(() => onSignedOut(() => setSession({ state: "out", error: null })), []);
  useEffect(() => watchSession(() => globalThis.location.reload()), []);
  const hasBeenIn = useRef(false);
  useEffect(() => {
    if (session.state === "in") hasBeenIn.current = true;
  }, [session]);
  const enter = (me: Me) => {
    // Nothing that this page holds of who was signed in before is left for the next one.
    if (hasBeenIn.current) globalThis.location.reload();
    else setSession({ state: "in", me });
  };
  if (session.state === "unknown") return <Loading label="Signing in" />;
  if (session.state === "out") {
    return <SignedOut error={session.error} onSignedIn={enter} />;
  }
  return <SignedIn key={session.me.identity} me={session.me} />;
}

function SignedIn({ me }: { me: Me }) {
  const [client] = useState(() => {
    setDraftOwner(me.identity);
    return makeQueryClient();
  });
  const [events, setEvents] = useState<Events | null>(null);
  useEffect(() => {
    const started = new Events();
    started.start();
    setEvents(started);
    return () => started.stop();
  }, []);
  if (!events) return null;
  return (
    <QueryClientProvider client={client}>
      <MeContext value={me}>
        <EventsContext value={events}>
          <Shell />
        </EventsContext>
      </MeContext>
    </QueryClientProvider>
  );
}
