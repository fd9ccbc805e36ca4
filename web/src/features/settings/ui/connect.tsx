/** How clients are connected: one command for each, what it would write, and the HTTP door for those that take no command. */
import { Checkbox } from "@mantine/core";
import { useState } from "react";
import type { DataOf } from "@/api/client";
import { useEntry, useMe } from "@/api/hooks";
import { Name } from "@/shared/Name";
import { Command, CopyButton, Fault, Loading } from "@/shared/states";
import { httpSnippet, installCommand } from "../rules/connect";
import classes from "../settings.module.css";

type ClientSetup = DataOf<"connect_clients">["clients"][number];

export function Connect() {
  const me = useMe();
  return (
    <>
      {me.kind === "person" && <Clients />}
      <HttpDoor />
    </>
  );
}

function Clients() {
  const me = useMe();
  const [folders, setFolders] = useState<readonly string[]>(() => me.roots.slice(0, 1));
  const setups = useEntry("tools", "connect_clients", { folders: [...folders] }, { placeholderData: (last) => last });
  const switchFolder = (folder: string, isOn: boolean) =>
    setFolders(me.roots.filter((root) => (root === folder ? isOn : folders.includes(root))));
  return (
    <section className={classes.section} aria-label="Clients on this machine">
      <h2 className={classes.title}>Clients on this machine</h2>
      <p className={classes.hint}>The command shows what it would change in the client&apos;s configuration, asks, and keeps a backup.</p>
      {me.roots.length > 0 && (
        <fieldset className={classes.folders}>
          <legend>Directories that the client&apos;s agent may use</legend>
          {me.roots.map((root) => (
            <Checkbox key={root} label={<Name isPath>{root}</Name>} checked={folders.includes(root)} onChange={(event) => switchFolder(root, event.currentTarget.checked)} />
          ))}
        </fieldset>
      )}
      {setups.isError && <Fault error={setups.error} onRetry={() => void setups.refetch()} />}
      {setups.isPending && <Loading rows={8} label="Loading clients" />}
      {setups.isSuccess && (
        <ul className={classes.clients}>
          {setups.data.clients.toSorted((a, b) => rank(a) - rank(b)).map((setup) => (
            <Client key={setup.client} setup={setup} folders={folders} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** Clients that seem to be here come first, the form for any other one last. */
function rank(setup: ClientSetup): number {
  return setup.client === "other" ? 2 : setup.is_found || setup.is_installed ? 0 : 1;
}

function Client({ setup, folders }: { setup: ClientSetup; folders: readonly string[] }) {
  const state = setup.is_installed ? "has Holdfast" : setup.is_found ? "on this machine" : "";
  const title = setup.client === "other" ? "Any other client" : setup.title;
  return (
    <li className={classes.client}>
      <div className={classes.clientHead}>
        <h3 className={classes.clientTitle}>{title}</h3>
        {state && <span className={classes.chip}>{state}</span>}
      </div>
      {setup.needs_folder && folders.length === 0 ? (
        <p className={classes.hint}>It works only with a directory that is named: choose one above.</p>
      ) : (
        <>
          <Command>{installCommand(setup.client, folders)}</Command>
          <details className={classes.snippet}>
            <summary>What it writes{setup.config && ", usually to "}{setup.config && <Name isPath>{setup.config}</Name>}</summary>
            <div className={classes.code}>
              <pre tabIndex={0} role="group" aria-label={`Configuration of ${title}`}>{setup.snippet}</pre>
              <CopyButton text={setup.snippet} label={`Copy the configuration of ${title}`} />
            </div>
            <p className={classes.hint}>{setup.restart}</p>
          </details>
        </>
      )}
    </li>
  );
}

function HttpDoor() {
  const me = useMe();
  const isPerson = me.kind === "person";
  const setups = useEntry("tools", "connect_clients", {}, { enabled: isPerson });
  const origin = globalThis.location.origin;
  const snippet = httpSnippet(origin, isPerson ? "TOKEN" : "YOUR_KEY");
  return (
    <section className={classes.section} aria-label="Over HTTP">
      <h2 className={classes.title}>Over HTTP</h2>
      <p className={classes.hint}>For clients that connect to an address.</p>
      <dl className={classes.pairs}>
        <div>
          <dt>Address</dt>
          <dd>
            <Command>{`${origin}/mcp`}</Command>
          </dd>
        </div>
        <div>
          <dt>Header</dt>
          <dd>
            <Command>{`Authorization: Bearer ${isPerson ? "TOKEN" : "YOUR_KEY"}`}</Command>
          </dd>
        </div>
      </dl>
      <div className={classes.code}>
        <pre tabIndex={0} role="group" aria-label="Configuration for HTTP">{snippet}</pre>
        <CopyButton text={snippet} label="Copy the configuration for HTTP" />
      </div>
      {isPerson ? (
        <p className={classes.hint}>
          TOKEN is the content of {setups.data ? <Name isPath>{setups.data.token_file}</Name> : "agent.token in the state folder"}. It never comes to this page. Who has it can use the directories
          given to <code>holdfast serve</code>.
        </p>
      ) : (
        <p className={classes.hint}>YOUR_KEY is the key that you signed in with. It is not kept here.</p>
      )}
    </section>
  );
}
