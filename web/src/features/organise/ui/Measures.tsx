/** The four measures of a plan, each as a line over the last plans for its folder. */
import { useEntry } from "@/api/hooks";
import { Plot } from "@/shared/Plot";
import { Fault, Loading } from "@/shared/states";
import { formatSize } from "@/shared/times";
import classes from "../organise.module.css";
import type { PlanHead } from "./rows";

const BYTES_PER_TOKEN = 4;
const EMPTY = "A line appears with the second plan for this folder.";

export default function Measures({ head }: { head: PlanHead }) {
  const past = useEntry("plans", "plan_measures", { plan_id: head.plan_id });
  if (past.isError) return <Fault error={past.error} onRetry={() => void past.refetch()} />;
  if (past.isPending) return <Loading rows={3} label="Loading the measures" />;
  const { plans } = past.data;
  const times = plans.map((plan) => Date.parse(plan.created_at) / 1000);
  const percent = (value: number) => `${Math.round(value * 100)} %`;
  const whole = (value: number) => (Number.isInteger(value) ? value.toLocaleString("en-US") : "");
  const size = (value: number) => formatSize(value);
  const now = head.measures;
  return (
    <section className={classes.measures} tabIndex={0} aria-label="Measures of the last plans for this folder">
      <Plot title="Known before (cache hits)" now={percent(now.cache_hit_rate)} times={times} format={percent} max={1}
        lines={[{ label: "cache hits", values: plans.map((plan) => plan.measures.cache_hit_rate) }]} empty={EMPTY} />
      <Plot title="Not read (tokens saved)" now={formatSize(now.tokens_saved * BYTES_PER_TOKEN)} times={times} format={size}
        lines={[{ label: "not read", values: plans.map((plan) => plan.measures.tokens_saved * BYTES_PER_TOKEN) }]} empty={EMPTY} />
      <Plot title="Skipped for safety" now={now.safety_skips.toLocaleString("en-US")} times={times} format={whole}
        lines={[{ label: "skipped", values: plans.map((plan) => plan.measures.safety_skips) }]} empty={EMPTY} />
      <Plot title="Stay where they are" now={percent(now.do_nothing_ratio)} times={times} format={percent} max={1}
        lines={[{ label: "stay", values: plans.map((plan) => plan.measures.do_nothing_ratio) }]} empty={EMPTY} />
    </section>
  );
}
