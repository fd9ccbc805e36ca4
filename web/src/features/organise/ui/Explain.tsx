/** Why a file goes where it goes: the files most like it, the words and rules that decided, and its moves so far. */
import { Modal } from "@mantine/core";
import { useEntry } from "@/api/hooks";
import { Name } from "@/shared/Name";
import { Fault, Loading } from "@/shared/states";
import { Time } from "@/shared/Time";
import classes from "../organise.module.css";
import { Confidence } from "./FileRow";
import type { PlanRow } from "./rows";

export function Explain({ planId, row, onClose }: { planId: string; row: PlanRow; onClose: () => void }) {
  const told = useEntry("plans", "explain_plan_file", { plan_id: planId, address: row.address });
  const data = told.data;
  return (
    <Modal opened onClose={onClose} size={560} yOffset="12vh" title={<Name>{row.name}</Name>} closeButtonProps={{ "aria-label": "Close" }}>
      {told.isPending && <Loading rows={4} label="Asking why" />}
      {told.isError && <Fault error={told.error} onRetry={() => void told.refetch()} />}
      {data && (
        <dl className={classes.why}>
          <dt>Why</dt>
          <dd>{data.why}</dd>
          {data.category && (
            <>
              <dt>{data.moves.length > 0 || data.waiting_to ? "Belongs to" : "Best guess"}</dt>
              <dd className={classes.whyGuess}>
                <Name>{data.category}</Name> <Confidence value={data.confidence} />
              </dd>
            </>
          )}
          {data.nearest && data.nearest.length > 0 && (
            <>
              <dt>Most like</dt>
              <dd>
                <ul>
                  {data.nearest.map((name) => (
                    <li key={name}>
                      <Name>{name}</Name>
                    </li>
                  ))}
                </ul>
              </dd>
            </>
          )}
          {data.terms && data.terms.length > 0 && (
            <>
              <dt>Words</dt>
              <dd>
                {data.terms.map((term, at) => (
                  <span key={term}>
                    {at > 0 && ", "}
                    <Name>{term}</Name>
                  </span>
                ))}
              </dd>
            </>
          )}
          {data.rule && (
            <>
              <dt>Rule</dt>
              <dd>{data.rule}</dd>
            </>
          )}
          {data.moves.length > 0 && (
            <>
              <dt>Moves</dt>
              <dd>
                <ul>
                  {data.moves.map((move) => (
                    <li key={`${move.plan_id} ${move.at}`}>
                      <Time at={move.at} />: <Name isPath>{move.path}</Name> → <Name isPath>{move.to}</Name>
                    </li>
                  ))}
                </ul>
              </dd>
            </>
          )}
        </dl>
      )}
    </Modal>
  );
}
