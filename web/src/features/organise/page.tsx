/** Organise: choose a folder, see what a scan proposes, correct it, let it be carried out, and take it back. */
import { useParams } from "wouter";
import { Chooser } from "./ui/Chooser";
import { Overview } from "./ui/Overview";
import { PlanPage } from "./ui/PlanPage";

export default function OrganisePage() {
  const { id } = useParams<{ id?: string }>();
  if (id === undefined) return <Overview />;
  return id === "new" ? <Chooser /> : <PlanPage key={id} planId={id} />;
}
