/** The form of a tool: fields made from its JSON Schema, nested as deep as it is. Each change is a change of the one text. */
import { Button, NativeSelect, Textarea, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { useId } from "react";
import { isObject, keyOf, writeJson, type Path } from "../rules/json_text";
import { emptyOf, variantFor, variantsOf, type Problem, type Schema, type Variant } from "../rules/schema";
import classes from "../tools.module.css";

export interface FormProps {
  schema: Schema;
  value: unknown;
  problems: readonly Problem[];
  /** Put a value at a path; undefined leaves it out. */
  onPut: (path: Path, value: unknown) => void;
  /** Show a value in the JSON view, because a form cannot hold it. */
  onShowJson: (path: Path) => void;
}

interface FieldProps extends FormProps {
  name: string;
  path: Path;
  isRequired: boolean;
}

const NOT_SENT = "";

/** Return whether a field would change a text without being asked: line ends of other systems, what no keyboard writes. */
function isUntypable(text: string): boolean {
  return Array.from(text).some((char) => (char < " " && char !== "\n" && char !== "\t") || char === "\u007f");
}

export function Form(props: FormProps) {
  const { schema, value } = props;
  const names = Object.keys(schema.properties ?? {});
  if (names.length === 0) return <p className={classes.hint}>It takes no arguments.</p>;
  return (
    <div className={classes.fields}>
      <Members {...props} path={[]} members={isObject(value) ? value : {}} />
    </div>
  );
}

function Members(props: FormProps & { path: Path; members: Record<string, unknown> }) {
  const { schema, members, path, ...rest } = props;
  return Object.entries(schema.properties ?? {}).map(([name, inner]) => (
    <Field
      key={name}
      {...rest}
      name={name}
      path={[...path, name]}
      schema={inner}
      value={Object.hasOwn(members, name) ? members[name] : undefined}
      isRequired={schema.required?.includes(name) ?? false}
    />
  ));
}

function Field(props: FieldProps) {
  const { name, schema, value, path, isRequired, problems, onPut } = props;
  const variants = variantsOf(schema);
  const variant = variantFor(variants, value === undefined ? emptyOf(schema) : value);
  const fault = problems.find((problem) => keyOf(problem.path) === keyOf(path))?.message;
  if (variants.length === 1) return <VariantField {...props} variant={variant} fault={fault} />;
  // A union, or a value that may be null: which of its forms comes first, its own field after that.
  const at = value === undefined ? NOT_SENT : String(variants.indexOf(variant));
  const options = variants.map((each, index) => ({ value: String(index), label: labelOf(each) }));
  return (
    <div className={classes.union}>
      <NativeSelect
        label={`${name}: which form`}
        description={schema.description}
        data={isRequired ? options : [{ value: NOT_SENT, label: "left out" }, ...options]}
        value={at}
        error={fault}
        onChange={(event) => {
          const chosen = variants[Number(event.currentTarget.value)];
          onPut(path, event.currentTarget.value === NOT_SENT || !chosen ? undefined : emptyOf(chosen.schema));
        }}
      />
      {value !== undefined && variant.kind !== "null" && (
        <VariantField {...props} isRequired schema={withoutDescription(variant.schema)} variant={variant} fault={undefined} />
      )}
    </div>
  );
}

function labelOf({ kind, schema }: Variant): string {
  return kind === "constant" ? writeJson(schema.const) : kind;
}

function withoutDescription(schema: Schema): Schema {
  const rest = { ...schema };
  delete rest.description;
  return rest;
}

type VariantProps = FieldProps & { variant: Variant; fault: string | undefined };

function VariantField(props: VariantProps) {
  const { name, schema, value, path, isRequired, variant, fault, onPut } = props;
  const common = {
    label: name,
    description: schema.description,
    error: fault,
    withAsterisk: isRequired,
    "aria-required": isRequired,
  };
  const left = placeholderOf(schema, isRequired);
  switch (variant.kind) {
    case "text":
      return <TextField {...props} left={left} />;
    case "number":
    case "whole number":
      return (
        <TextInput
          {...common}
          placeholder={left}
          inputMode={variant.kind === "number" ? "decimal" : "numeric"}
          value={typeof value === "number" || typeof value === "string" ? String(value) : ""}
          onChange={(event) => onPut(path, numberIn(event.currentTarget.value, isRequired))}
        />
      );
    case "yes or no":
      return <Choice {...props} choices={[true, false]} labels={["yes", "no"]} left={left} />;
    case "choice":
      return <Choice {...props} choices={variant.schema.enum ?? []} labels={(variant.schema.enum ?? []).map(String)} left={left} />;
    case "constant":
      return <Choice {...props} choices={[variant.schema.const]} labels={[writeJson(variant.schema.const)]} left={left} />;
    case "list":
      return <ListField {...props} />;
    case "object":
      return <ObjectField {...props} />;
    case "null":
    case "any":
      return <JsonOnly {...props} />;
  }
}

/** Return the number that was typed; what is none yet stays a text, and is told to be none. */
function numberIn(typed: string, isRequired: boolean): unknown {
  if (typed === "" && !isRequired) return undefined;
  return String(Number(typed)) === typed && Number.isFinite(Number(typed)) ? Number(typed) : typed;
}

function placeholderOf(schema: Schema, isRequired: boolean): string {
  if (isRequired) return "";
  return schema.default === undefined ? "left out" : `default: ${JSON.stringify(schema.default)}`;
}

function TextField(props: VariantProps & { left: string }) {
  const { name, schema, value, path, isRequired, fault, left, onPut } = props;
  if (typeof value === "string" && isUntypable(value)) return <JsonOnly {...props} />;
  const common = { label: name, description: schema.description, error: fault, placeholder: left, withAsterisk: isRequired };
  const put = (typed: string) => onPut(path, typed === "" && !isRequired ? undefined : typed);
  const shown = typeof value === "string" ? value : "";
  if (schema.maxLength !== undefined && schema.maxLength <= 100) {
    return <TextInput {...common} value={shown} onChange={(event) => put(event.currentTarget.value)} />;
  }
  return (
    <Textarea {...common} autosize minRows={1} maxRows={16} spellCheck={false} value={shown} onChange={(event) => put(event.currentTarget.value)} />
  );
}

function Choice(props: VariantProps & { choices: readonly unknown[]; labels: readonly string[]; left: string }) {
  const { name, schema, value, path, isRequired, fault, choices, labels, left, onPut } = props;
  const data = choices.map((_choice, at) => ({ value: String(at), label: labels[at] ?? "" }));
  const at = choices.indexOf(value);
  const needsNone = !isRequired || at < 0;
  return (
    <NativeSelect
      label={name}
      description={schema.description}
      error={fault}
      withAsterisk={isRequired}
      data={needsNone ? [{ value: NOT_SENT, label: left || "choose…" }, ...data] : data}
      value={at < 0 ? NOT_SENT : String(at)}
      onChange={(event) => {
        const chosen = event.currentTarget.value;
        onPut(path, chosen === NOT_SENT ? undefined : choices[Number(chosen)]);
      }}
    />
  );
}

function ListField(props: VariantProps) {
  const { name, value, path, isRequired, variant, fault, onPut } = props;
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  const inner = variant.schema.items ?? {};
  const isFull = variant.schema.maxItems !== undefined && items.length >= variant.schema.maxItems;
  return (
    <Nested name={name} schema={props.schema} isRequired={isRequired} fault={fault}>
      {items.map((item, at) => (
        <div key={at} className={classes.item}>
          <div className={classes.itemBody}>
            <Field {...props} name={`${name} ${at + 1}`} path={[...path, at]} schema={inner} value={item} isRequired />
          </div>
          <Button
            variant="subtle"
            color="gray"
            aria-label={`Remove ${name} ${at + 1}`}
            onClick={() => (items.length === 1 && !isRequired ? onPut(path, undefined) : onPut([...path, at], undefined))}
          >
            <IconX size={14} />
          </Button>
        </div>
      ))}
      <Button
        variant="default"
        leftSection={<IconPlus size={14} />}
        disabled={isFull}
        onClick={() => onPut(path, [...items, emptyOf(inner)])}
      >
        Add to {name}
      </Button>
    </Nested>
  );
}

function ObjectField(props: VariantProps) {
  const { name, schema, value, path, isRequired, variant, fault, onPut } = props;
  if (value === undefined) {
    return (
      <Nested name={name} schema={schema} isRequired={isRequired} fault={fault}>
        <Button variant="default" leftSection={<IconPlus size={14} />} onClick={() => onPut(path, emptyOf(variant.schema))}>
          Fill {name} in
        </Button>
      </Nested>
    );
  }
  return (
    <Nested name={name} schema={schema} isRequired={isRequired} fault={fault}>
      <Members {...props} schema={variant.schema} members={isObject(value) ? value : {}} />
      {!isRequired && (
        <Button variant="subtle" color="gray" onClick={() => onPut(path, undefined)}>
          Leave {name} out
        </Button>
      )}
    </Nested>
  );
}

function Nested(props: { name: string; schema: Schema; isRequired: boolean; fault: string | undefined; children: React.ReactNode }) {
  const { name, schema, isRequired, fault, children } = props;
  const id = useId();
  return (
    <div className={classes.nested} role="group" aria-labelledby={id}>
      <span id={id} className={classes.fieldName}>
        {name}
        {isRequired && <span className={classes.asterisk}> *</span>}
      </span>
      {schema.description && <span className={classes.fieldHint}>{schema.description}</span>}
      {fault && <span className={classes.fieldFault}>{fault}</span>}
      {children}
    </div>
  );
}

/** Show a value that a form has no field for, and the way to where it can be changed. */
function JsonOnly(props: VariantProps) {
  const { name, schema, value, path, isRequired, fault, onPut, onShowJson } = props;
  const begin = () => {
    onPut(path, emptyOf(schema));
    onShowJson(path);
  };
  return (
    <Nested name={name} schema={schema} isRequired={isRequired} fault={fault}>
      {value !== undefined && <pre className={classes.jsonValue}>{writeJson(value)}</pre>}
      <div className={classes.row}>
        {value === undefined ? (
          <Button variant="default" leftSection={<IconPlus size={14} />} onClick={begin}>
            Write {name} as JSON
          </Button>
        ) : (
          <Button variant="default" onClick={() => onShowJson(path)}>
            Change {name} as JSON
          </Button>
        )}
      </div>
    </Nested>
  );
}
