/** Choosing a folder to tidy: by the names of directories in the home folder, by its path, or from what was tidied before. */
import { Button, Checkbox, TextInput } from "@mantine/core";
import { IconArrowLeft, IconArrowUp, IconFolder } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState, type KeyboardEvent } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { call } from "@/api/client";
import { useCanAct, useEntry } from "@/api/hooks";
import { useKeys } from "@/shared/keys";
import { Name } from "@/shared/Name";
import { displayName, splitPath } from "@/shared/names";
import { Command, Empty, Fault, Loading } from "@/shared/states";
import { quantity } from "@/shared/times";
import { VirtualList } from "@/shared/VirtualList";
import classes from "../organise.module.css";
import { shellWord } from "../rules/words";

const ROW_PX = 32;
const MAX_KNOWN = 8;

export function Chooser() {
  const [query, setQuery] = useSearchParams();
  const at = query.get("at") ?? "";
  const [withHidden, setWithHidden] = useState(false);
  const [filter, setFilter] = useState("");
  const [typed, setTyped] = useState<string | null>(null);
  const [withSubfolders, setWithSubfolders] = useState(false);
  const [isWholeHome, setWholeHome] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const canAct = useCanAct();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const directories = useEntry("files", "list_directories", { path: at, with_hidden: withHidden });
  const plans = useEntry("plans", "all_plans", { limit: 200 });
  const roots = useEntry("files", "known_roots", {});
  const known = useMemo(
    () => [...new Set([...(plans.data?.plans ?? []).map((plan) => plan.folder), ...(roots.data?.roots ?? []).map((root) => root.path)])].slice(0, MAX_KNOWN),
    [plans.data, roots.data],
  );
  const path = typed ?? directories.data?.path ?? "";
  const isHome = directories.isSuccess && !directories.data.above && typed === null && !at;
  const rows = (directories.data?.directories ?? []).filter((row) => row.name.toLowerCase().includes(filter.toLowerCase()));

  const open = (to: string) => {
    setTyped(null);
    setFilter("");
    setFault(null);
    setQuery(to ? { at: to } : {});
  };
  const start = async () => {
    setBusy(true);
    setFault(null);
    try {
      const scan = await call("start_scan", { directory: path.trim(), include_subfolders: withSubfolders, is_whole_home: isWholeHome });
      await client.invalidateQueries({ queryKey: ["plans"] });
      navigate(`/organise/${scan.plan_id}`);
    } catch (error) {
      setFault(error);
      setBusy(false);
    }
  };
  const isOff = !canAct || isBusy || path.trim() === "" || (isHome && !isWholeHome);
  useKeys("Choose a folder", [
    { keys: "/", label: "Filter the folders", run: () => document.getElementById("directory-filter")?.focus() },
    { keys: "s", label: "Scan this folder", run: () => void start(), isOff },
    { keys: "u", label: "The folder above", run: () => open(directories.data?.above ?? ""), isOff: !directories.data?.above, isMotion: true },
  ]);
  const onFilterKey = (event: KeyboardEvent<HTMLInputElement>) => {
    const [first] = rows;
    if (event.key === "Enter" && first) {
      event.preventDefault();
      open(first.path);
    }
    if (event.key === "Escape") event.currentTarget.blur();
  };

  return (
    <div className={classes.chooser}>
      <header className={classes.overviewHead}>
        <h1>
          <Link href="/organise" className={classes.back ?? ""} aria-label="Back to the plans">
            <IconArrowLeft size={18} stroke={1.6} />
          </Link>
          Choose a folder
        </h1>
      </header>
      <form
        className={classes.chosen}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isOff) void start();
        }}
      >
        <TextInput
          label="Folder to tidy"
          description="Choose it below, or type its path."
          size="sm"
          value={path}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Checkbox
          size="sm"
          checked={withSubfolders}
          onChange={(event) => setWithSubfolders(event.currentTarget.checked)}
          label="Sort the files in its subfolders too"
          description="Otherwise its subfolders are the shelves, and what lies in them says what belongs there."
        />
        {isHome && (
          <Checkbox
            size="sm"
            checked={isWholeHome}
            onChange={(event) => setWholeHome(event.currentTarget.checked)}
            label="I mean my whole home folder"
          />
        )}
        {fault !== null && <Fault error={fault} />}
        <div className={classes.chosenActions}>
          <Button type="submit" size="sm" disabled={isOff}>
            {isBusy ? "Starting…" : "Scan this folder"}
          </Button>
          <Command>{`holdfast organise scan ${shellWord(path)}${withSubfolders ? " --subfolders" : ""}`}</Command>
        </div>
      </form>
      {known.length > 0 && (
        <section className={classes.section}>
          <h2>Known folders</h2>
          <div className={classes.known}>
            {known.map((folder) => (
              <Button key={folder} variant="default" leftSection={<IconFolder size={14} />} onClick={() => setTyped(folder)} title={displayName(folder)}>
                <Name>{splitPath(folder).name}</Name>
              </Button>
            ))}
          </div>
        </section>
      )}
      <section className={classes.directories} aria-label="Directories">
        <div className={classes.directoriesHead}>
          <Button
            variant="default"
            leftSection={<IconArrowUp size={14} />}
            disabled={!directories.data?.above}
            title="u"
            onClick={() => open(directories.data?.above ?? "")}
          >
            Up
          </Button>
          <span className={classes.here}>
            <Name>{directories.data?.path ?? at}</Name>
          </span>
          <TextInput
            id="directory-filter"
            aria-label="Filter the folders"
            placeholder="Filter"
            value={filter}
            onChange={(event) => setFilter(event.currentTarget.value)}
            onKeyDown={onFilterKey}
          />
          <Checkbox size="xs" label="Hidden" checked={withHidden} onChange={(event) => setWithHidden(event.currentTarget.checked)} />
        </div>
        {directories.isError && <Fault error={directories.error} onRetry={() => void directories.refetch()} />}
        {directories.isPending && <Loading rows={6} label="Listing" />}
        {directories.isSuccess && rows.length === 0 && (
          <Empty title={filter ? "No folder has that in its name." : "There is no folder in here."}>{filter ? "" : "The folder itself can be scanned."}</Empty>
        )}
        {rows.length > 0 && (
          <div className={classes.directoryList} style={{ height: `min(${rows.length * ROW_PX + 2}px, 420px, 50vh)` }}>
            <VirtualList
              count={rows.length}
              rowHeight={ROW_PX}
              label="Folders"
              keyOf={(index) => rows[index]?.path ?? String(index)}
              renderRow={(index) => {
                const row = rows[index];
                return row ? (
                  <button type="button" className={classes.directory} onClick={() => open(row.path)}>
                    <IconFolder size={16} stroke={1.6} aria-hidden />
                    <Name>{row.name}</Name>
                  </button>
                ) : null;
              }}
            />
          </div>
        )}
        <p className={classes.dim}>
          {quantity(rows.length, "folder")}
          {directories.data?.is_cut ? ", the first of more" : ""}. Only names are shown here; a folder is opened when you scan it.
        </p>
      </section>
    </div>
  );
}
