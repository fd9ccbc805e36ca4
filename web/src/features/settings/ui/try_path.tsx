/** Tries the rules in force on a path: what may a client do with it, and which rule says so. */
import { Button, TextInput } from "@mantine/core";
import { useState, type SyntheticEvent } from "react";
import { call, type DataOf } from "@/api/client";
import { Name } from "@/shared/Name";
import { CopyButton, Fault } from "@/shared/states";
import { quoteWord } from "@/shared/commands";
import classes from "../settings.module.css";

type Tried = { answer: DataOf<"test_policy">; client: string } | { fault: unknown } | null;

export function TryPath() {
  const [path, setPath] = useState("");
  const [client, setClient] = useState("");
  const [tried, setTried] = useState<Tried>(null);
  const submit = async (event: SyntheticEvent) => {
    event.preventDefault();
    try {
      setTried({ answer: await call("test_policy", { path: path.trim(), client: client.trim() }), client: client.trim() });
    } catch (fault) {
      setTried({ fault });
    }
  };
  const command = ["holdfast policy test", quoteWord(path.trim()), ...(client.trim() ? ["--client", quoteWord(client.trim())] : [])].join(" ");
  return (
    <section className={classes.section} aria-label="Try the rules">
      <h2 className={classes.title}>Try the rules</h2>
      <p className={classes.hint}>Those in force, on any path: nothing needs to exist there.</p>
      <form className={classes.tryForm} onSubmit={(event) => void submit(event)}>
        <TextInput size="xs" label="Path" placeholder="~/project/.env" spellCheck={false} value={path} onChange={(event) => setPath(event.currentTarget.value)} />
        <TextInput size="xs" label="Client" placeholder="any" spellCheck={false} value={client} onChange={(event) => setClient(event.currentTarget.value)} />
        <Button type="submit" variant="default" disabled={path.trim() === ""}>
          Try
        </Button>
        <CopyButton text={command} label="Copy the command that tries this path" />
      </form>
      <div role="status" className={classes.tried}>
        {tried && ("fault" in tried ? <Fault error={tried.fault} /> : <Decision {...tried} />)}
      </div>
    </section>
  );
}

const MAY = { yes: "yes", "after your approval": "after your approval", no: "no" } as const;

function Decision({ answer, client }: { answer: DataOf<"test_policy">; client: string }) {
  return (
    <dl className={classes.pairs}>
      <div>
        <dt>Path</dt>
        <dd>
          <Name isPath>{answer.path}</Name>
        </dd>
      </div>
      <div>
        <dt>{client === "" ? "Any client" : <Name>{client}</Name>}</dt>
        <dd>
          may read it: {MAY[answer.may_read]}; may change it: {MAY[answer.may_write]}
        </dd>
      </div>
      <div>
        <dt>Because</dt>
        <dd>{answer.rule === undefined ? answer.source : `rule ${answer.rule} says ${answer.access}`}</dd>
      </div>
    </dl>
  );
}
