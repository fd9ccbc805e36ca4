/** The plan panel: where the files of a folder would go, shown inside the chat, and the person's approval of it. */
import { useCallback, useEffect, useMemo, useState } from "react";
import type { DataOf } from "@/api/client";
import { Words } from "@/shared/LineText";
import { Name } from "@/shared/Name";
import { splitPath } from "@/shared/names";
import { shortId } from "@/shared/reviews/words";
import { quantity } from "@/shared/times";
import { flatten, type TreeNode, type TreeRow } from "@/shared/tree/flatten";
import { Tree } from "@/shared/tree/Tree";
import { asToolFault, Button, ConsoleLink, Message, Question, start, textOf, tokenOf, useSession, type Session } from "./frame";
import classes from "./panel.module.css";

type PlanRows = DataOf<"plan_rows">;
type PanelPlan = PlanRows & { can_decide: boolean; console_url?: string | null };
type View = "moves" | "uncertain" | "left_alone" | "skipped";

interface PlanNode extends TreeNode {
  view: View;
  folder?: string;
  count?: number;
  confidence?: number | null;
  isNew?: boolean;
  note?: string;
}

const MAX_ROWS = 2_000;
const ROW_HEIGHT = 28;
const MAX_TREE_ROWS = 14;
const STANDINGS: Record<string, string> = {
  APPROVED: "Approved. Nothing has moved yet: the agent carries it out.",
  RUNNING: "It is being carried out.",
  EXECUTED: "Carried out.",
  FAILED: "Carried out, but for some files that stayed.",
  CANCELLED: "Closed. Nothing is moved.",
  UNDONE: "Undone.",
};

function PlanPanel() {
  const session = useSession();
  const { bridge, result, cancelled, hasHost } = session;
  const { plan, fault, load } = usePlan(session);
  const [status, setStatus] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [asking, setAsking] = useState<"approve" | "close" | null>(null);
  const [isBusy, setBusy] = useState(false);

  const decide = async (decision: "approve" | "close") => {
    if (!plan || !result) return;
    setAsking(null);
    setBusy(true);
    setProblem(null);
    try {
      const args = { token: tokenOf(result), plan_hash: plan.plan_hash, decision };
      const decided = await bridge.callTool<{ status: string; message: string }>("panel_decide_plan", args);
      setStatus(decided.status);
      if (!(await bridge.tell(decided.message))) setProblem("The agent was not told. Ask it to go on.");
    } catch (error) {
      setProblem(`Nothing was decided. ${asToolFault(error).message}`);
      await load();
    } finally {
      setBusy(false);
    }
  };

  if (cancelled !== null && !result) return <Message>The call was cancelled, so there is no plan to show.</Message>;
  if (!result) return <Message>{hasHost ? "The folder is being looked at…" : "Waiting for the host…"}</Message>;
  if (result.isError) return <Message>There is no plan. {result.content?.find((block) => block.text)?.text ?? ""}</Message>;
  if (result.structuredContent?.["status"] === "SCANNING") {
    return <Message>The plan is still being made. It is shown when the agent asks for it again.</Message>;
  }
  if (fault) {
    return (
      <Message>
        <Words text={fault} /> <code>holdfast organise</code> shows the plans, and so does <code>holdfast open</code>.
      </Message>
    );
  }
  if (!plan) return <Message>Loading the plan…</Message>;
  const canDecide = plan.can_decide && status === null;
  const standing = STANDINGS[status ?? plan.status];
  const moves = plan.counts["moves"] ?? 0;
  return (
    <main className={classes.panel}>
      <Facts plan={plan} />
      <Folders key={plan.plan_hash} plan={plan} session={session} />
      {asking ? (
        <Question
          text={asking === "approve" ? `The agent may then move ${quantity(moves, "file")} as shown. You can undo all of it.` : "Nothing of this plan is moved, and it cannot be approved any more."}
          yes={asking === "approve" ? `Approve ${quantity(moves, "move")}` : "Close the plan"}
          isBusy={isBusy}
          onYes={() => void decide(asking)}
          onLeave={() => setAsking(null)}
        />
      ) : (
        <div className={classes.bar}>
          {canDecide ? (
            <>
              <Button isMain isOff={isBusy || moves === 0} onClick={() => setAsking("approve")}>
                Approve {quantity(moves, "move")}…
              </Button>
              <Button isOff={isBusy} onClick={() => setAsking("close")}>
                Close the plan…
              </Button>
              <span className={classes.spring} />
            </>
          ) : (
            <span className={classes.outcome} role="status">
              {standing ?? (plan.needs_approval ? "This panel can only show the plan: decide in the console." : "This plan needs no approval.")}
            </span>
          )}
          <ConsoleLink bridge={bridge} url={plan.console_url} command={`holdfast organise show ${shortId(plan.plan_id)}`} />
        </div>
      )}
      {problem && (
        <p className={classes.fault} role="alert">
          <Words text={problem} />
        </p>
      )}
    </main>
  );
}

function planIdOf({ input, result }: Session): string {
  return textOf(result?.structuredContent?.["plan_id"]) || textOf(input["plan_id"]);
}

function usePlan(session: Session) {
  const { bridge, result } = session;
  const planId = planIdOf(session);
  const [plan, setPlan] = useState<PanelPlan | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const load = useCallback(async () => {
    if (!result || result.isError || result.structuredContent?.["status"] === "SCANNING") return;
    try {
      setPlan(await bridge.callTool<PanelPlan>("panel_plan", { ...withToken(result), plan_id: planId, view: "by_folder" }));
      setFault(null);
    } catch (error) {
      setFault(asToolFault(error).message);
    }
  }, [bridge, result, planId]);
  useEffect(() => void load(), [load]);
  return { plan, fault, load };
}

function withToken(result: NonNullable<Session["result"]>): { token?: string } {
  const token = tokenOf(result);
  return token === undefined ? {} : { token };
}

function Facts({ plan }: { plan: PanelPlan }) {
  const { folder, name } = splitPath(plan.folder);
  const uncertain = plan.counts["uncertain"] ?? 0;
  const alone = plan.counts["left_alone"] ?? 0;
  const skipped = plan.counts["skipped"] ?? 0;
  return (
    <header className={classes.facts}>
      <h1 className={classes.title}>
        <span className={classes.kind}>Tidy </span>
        <Name>{name}</Name>
      </h1>
      <div className={classes.folder}>
        <Name>{folder}</Name>
      </div>
      <div className={classes.sub}>
        <span>{quantity(plan.counts["moves"] ?? 0, "move")}</span>
        {uncertain > 0 && <span>{quantity(uncertain, "file needs a look and stays", "files need a look and stay")}</span>}
        {alone > 0 && <span>{alone.toLocaleString("en-US")} left alone</span>}
        {skipped > 0 && <span>{skipped.toLocaleString("en-US")} skipped</span>}
      </div>
      {plan.remark && <div className={classes.sub}>{plan.remark}</div>}
    </header>
  );
}

/** The folders that files go to, and beneath an open one its files, fetched when it is opened. */
function Folders({ plan, session }: { plan: PanelPlan; session: Session }) {
  const { bridge, result } = session;
  const roots = useMemo(() => rootsOf(plan), [plan]);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [children, setChildren] = useState<ReadonlyMap<string, readonly PlanNode[]>>(new Map());
  const [selected, setSelected] = useState<string | null>(null);
  const rows = useMemo(() => flatten<PlanNode>(roots, open, (id) => children.get(id)), [roots, open, children]);
  const toggle = (node: PlanNode, isOpen: boolean) => {
    if (!node.isFolder || !result) return;
    const opened = new Set(open);
    if (isOpen) opened.add(node.id);
    else opened.delete(node.id);
    setOpen(opened);
    if (!isOpen || children.has(node.id)) return;
    const args = { ...withToken(result), plan_id: plan.plan_id, view: node.view, limit: MAX_ROWS, ...(node.folder === undefined ? {} : { folder: node.folder }) };
    void bridge.callTool<PanelPlan>("panel_plan", args).then(
      (page) => setChildren((known) => new Map(known).set(node.id, nodesOf(node, page))),
      (error: unknown) => setChildren((known) => new Map(known).set(node.id, [{ id: `${node.id}/fault`, name: "", isFolder: false, view: node.view, note: asToolFault(error).message }])),
    );
  };
  if (roots.length === 0) return <Message>There is nothing to move.</Message>;
  return (
    <div className={classes.tree} style={{ height: Math.min(rows.length, MAX_TREE_ROWS) * ROW_HEIGHT }}>
      <Tree
        label="Where files go"
        rows={rows}
        rowHeight={ROW_HEIGHT}
        selected={selected}
        onSelect={(node) => setSelected(node.id)}
        onEnter={(node) => toggle(node, !open.has(node.id))}
        onOpen={toggle}
        renderRow={(row) => <Row row={row} />}
      />
    </div>
  );
}

function rootsOf(plan: PanelPlan): PlanNode[] {
  const folders: PlanNode[] = plan.folders.map((total) => ({
    id: `to/${total.folder}`,
    name: total.folder,
    isFolder: true,
    view: "moves",
    folder: total.folder,
    count: total.files,
    confidence: total.confidence,
    isNew: total.is_new ?? false,
  }));
  const others: [View, string][] = [
    ["uncertain", "Needs a look, stays"],
    ["left_alone", "Left alone"],
    ["skipped", "Skipped"],
  ];
  for (const [view, note] of others) {
    const count = plan.counts[view] ?? 0;
    if (count > 0) folders.push({ id: view, name: "", note, isFolder: true, view, count });
  }
  return folders;
}

function nodesOf(parent: PlanNode, page: PanelPlan): PlanNode[] {
  const nodes: PlanNode[] = page.rows.map((row, at) => ({
    id: `${parent.id}/${at}`,
    name: row.path,
    isFolder: false,
    view: parent.view,
    confidence: parent.view === "moves" ? (row.confidence ?? null) : null,
    note: row.reason,
  }));
  const more = page.total - page.rows.length;
  if (more > 0) nodes.push({ id: `${parent.id}/more`, name: "", isFolder: false, view: parent.view, note: `${quantity(more, "more file")}: the console shows all` });
  return nodes;
}

function Row({ row }: { row: TreeRow<PlanNode> }) {
  const { node } = row;
  return (
    <span className={classes.row} title={node.note}>
      <span className={classes.rowName}>{node.name ? <Name>{node.name}</Name> : node.note}</span>
      {node.isNew && <span className={classes.chip}>new</span>}
      <span className={classes.spring} />
      {node.count !== undefined && <span className={classes.rowDim}>{quantity(node.count, "file")}</span>}
      {node.confidence !== null && node.confidence !== undefined && <span className={classes.rowDim}>{Math.round(node.confidence * 100)} %</span>}
    </span>
  );
}

start(<PlanPanel />);
