/** Shows data to a person: members with their values, lists of alike objects as tables. */
import { LineText } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { isObject } from "../rules/json_text";
import classes from "../tools.module.css";

const MAX_ROWS = 200;
const MAX_COLUMNS = 8;

export function DataView({ value }: { value: unknown }) {
  if (Array.isArray(value)) return <List items={value as unknown[]} />;
  if (isObject(value)) return <Members value={value} />;
  return <Scalar value={value} />;
}

function Members({ value }: { value: Record<string, unknown> }) {
  const members = Object.entries(value);
  if (members.length === 0) return <span className={classes.dim}>nothing</span>;
  return (
    <dl className={classes.members}>
      {members.map(([name, member]) => (
        <div key={name} data-nested={isNested(member) || undefined}>
          <dt>
            <Name>{name}</Name>
          </dt>
          <dd>
            <DataView value={member} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function isNested(value: unknown): boolean {
  return (Array.isArray(value) || isObject(value)) && Object.keys(value).length > 0;
}

function List({ items }: { items: readonly unknown[] }) {
  if (items.length === 0) return <span className={classes.dim}>none</span>;
  const shown = items.slice(0, MAX_ROWS);
  const columns = columnsOf(shown);
  const rest = items.length - shown.length;
  return (
    <>
      {columns ? (
        <div className={classes.tableBox} tabIndex={0} role="group" aria-label="Rows">
          <table className={classes.table}>
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column} scope="col">
                    <Name>{column}</Name>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((item, at) => (
                <tr key={at}>
                  {columns.map((column) => (
                    <td key={column}>{isObject(item) && Object.hasOwn(item, column) && <Scalar value={item[column]} />}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <ol className={classes.listed}>
          {shown.map((item, at) => (
            <li key={at}>
              <DataView value={item} />
            </li>
          ))}
        </ol>
      )}
      {rest > 0 && <p className={classes.hint}>{rest.toLocaleString("en-US")} more stand in Raw.</p>}
    </>
  );
}

/** Return the columns of a table, null when the items are no flat objects of a few members. */
function columnsOf(items: readonly unknown[]): string[] | null {
  const names = new Set<string>();
  for (const item of items) {
    if (!isObject(item)) return null;
    for (const [name, member] of Object.entries(item)) {
      if (isNested(member)) return null;
      names.add(name);
    }
  }
  return names.size > 0 && names.size <= MAX_COLUMNS ? [...names] : null;
}

function Scalar({ value }: { value: unknown }) {
  if (typeof value === "string") return value.includes("\n") ? <PlainText text={value} /> : <Name>{value}</Name>;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (value === null || value === undefined) return <span className={classes.dim}>none</span>;
  return <span className="hf-number">{typeof value === "number" ? String(value) : JSON.stringify(value)}</span>;
}

/** Show a text as it is, with characters that would not be seen by their code points. */
export function PlainText({ text, label }: { text: string; label?: string }) {
  return (
    <pre className={classes.plain} {...(label ? { tabIndex: 0, role: "group", "aria-label": label } : {})}>
      {text.split("\n").map((line, at, lines) => (
        <span key={at}>
          <LineText text={line} />
          {at < lines.length - 1 && "\n"}
        </span>
      ))}
    </pre>
  );
}
