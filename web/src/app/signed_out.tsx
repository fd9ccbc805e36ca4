import { Button, PasswordInput } from "@mantine/core";
import { useState, type SyntheticEvent } from "react";
import { openSession, type Credential } from "@/api/session";
import type { Me } from "@/api/entries";
import { Command, Fault } from "@/shared/states";
import classes from "./app.module.css";

/** What is shown without a session: the command that makes a link, and a field for the key of a tenant. */
export function SignedOut({ error, onSignedIn }: { error: unknown; onSignedIn: (me: Me) => void }) {
  const [apiKey, setApiKey] = useState("");
  const [refusal, setRefusal] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const signIn = async (credential: Credential) => {
    setBusy(true);
    setRefusal(null);
    try {
      onSignedIn(await openSession(credential));
    } catch (fault) {
      setRefusal(fault);
    } finally {
      setBusy(false);
    }
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    void signIn({ api_key: apiKey.trim() });
  };
  return (
    <main className={classes.signedOut}>
      <div className={classes.mark}>
        <img src="/favicon.svg" width={28} height={28} alt="" />
        <h1>Holdfast</h1>
      </div>
      {error !== null && <Fault error={error} onRetry={() => globalThis.location.reload()} />}
      <section>
        <h2>Sign in on this machine</h2>
        <p>Run this in a terminal of the machine that Holdfast runs on; it opens this page with a link that works once.</p>
        <Command>holdfast open</Command>
      </section>
      <details>
        <summary>Sign in with an API key</summary>
        <form onSubmit={submit}>
          <p>For the store of a shared server. The key stays in this browser&apos;s session and is not kept.</p>
          <PasswordInput
            label="API key"
            value={apiKey}
            autoComplete="off"
            onChange={(event) => setApiKey(event.currentTarget.value)}
          />
          <Button type="submit" size="sm" disabled={apiKey.trim() === "" || isBusy}>
            Sign in
          </Button>
        </form>
      </details>
      {refusal !== null && <Fault error={refusal} />}
    </main>
  );
}
