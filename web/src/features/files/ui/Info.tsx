/** The facts of a file or folder: size, times, rights, encoding, hash. */
import { useEntry } from "@/api/hooks";
import { displayName } from "@/shared/names";
import { CopyButton, Fault, Loading } from "@/shared/states";
import { exact, formatSize, quantity } from "@/shared/times";
import classes from "../files.module.css";
import type { Opened } from "../opened";

const RULES: Record<string, string> = {
  review: "Agents change it after your approval only",
  "read-only": "Agents only read it",
  deny: "Agents do not see it",
};

type Fact = [label: string, value: string | number | null | undefined];

export function Info({ opened }: { opened: Opened }) {
  const { place } = opened;
  const isAddress = place.kind === "local" && place.path.startsWith("file://");
  const facts = ownFacts(opened);
  return (
    <div className={classes.facts}>
      <FactList facts={facts} />
      {place.kind === "local" && opened.type !== "gone" && !isAddress && <LocalFacts path={place.path} />}
      {place.kind === "store" && opened.type !== "gone" && place.path !== "" && <StoredFacts project={place.project} path={place.path} />}
    </div>
  );
}

function ownFacts(opened: Opened): Fact[] {
  const { place } = opened;
  const path = displayName(place.path || "/");
  const facts: Fact[] = place.kind === "local" ? [["Path", path]] : [["Project", place.project], ["Path", path]];
  if (opened.type !== "file") return facts;
  return [
    ...facts,
    ["Size", opened.sizeBytes < 1024 ? quantity(opened.sizeBytes, "byte") : `${formatSize(opened.sizeBytes)} (${quantity(opened.sizeBytes, "byte")})`],
    ["Changed", opened.modifiedAt && exact(Date.parse(opened.modifiedAt))],
    ["Type", opened.media_type],
    ["Encoding", opened.encoding],
    ["Line ends", opened.lineEnding],
    ["Hash", opened.hash],
    ["Rule", RULES[opened.access]],
  ];
}

function LocalFacts({ path }: { path: string }) {
  const info = useEntry("files", "get_file_info", { path });
  if (info.isError) return <Fault error={info.error} onRetry={() => void info.refetch()} />;
  if (info.isPending) return <Loading rows={3} />;
  const data = info.data as Record<string, unknown>;
  const entries: Fact[] = [
    ["Created", moment(data["created"])],
    ["Read", moment(data["accessed"])],
    ["Rights", data["permissions"] as string],
    ["Entries", data["entries"] as number | undefined],
    ["Lines", data["lines"] as number | undefined],
    ["Characters", data["characters"] as number | undefined],
    ["Tokens", data["tokens"] === undefined ? null : `${data["estimated"] === true ? "about " : ""}${Number(data["tokens"]).toLocaleString("en-US")}`],
    ["Shape", data["shape"] as string | undefined],
  ];
  return <FactList facts={entries} />;
}

function StoredFacts({ project, path }: { project: string; path: string }) {
  const stat = useEntry("store", "file_stat", { project, path });
  if (stat.isError) return <Fault error={stat.error} onRetry={() => void stat.refetch()} />;
  if (stat.isPending) return <Loading rows={2} />;
  const facts: Fact[] = [
    ["Created", moment(stat.data.created_at)],
    ["Updated", moment(stat.data.updated_at)],
  ];
  return <FactList facts={facts} />;
}

function moment(at: unknown): string | null {
  return typeof at === "string" ? exact(Date.parse(at)) : null;
}

function FactList({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={classes.factList}>
      {facts.map(([label, value]) => (
        <FactRow key={label} label={label} value={value} />
      ))}
    </dl>
  );
}

function FactRow({ label, value }: { label: string; value: string | number | null | undefined }) {
  if (value === null || value === undefined || value === "") return null;
  const text = typeof value === "number" ? value.toLocaleString("en-US") : value;
  return (
    <div className={classes.fact}>
      <dt>{label}</dt>
      <dd>
        <bdi>{text}</bdi>
        {(label === "Hash" || label === "Path") && <CopyButton text={text} label={`Copy the ${label.toLowerCase()}`} />}
      </dd>
    </div>
  );
}
