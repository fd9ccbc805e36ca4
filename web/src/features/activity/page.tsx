/** Activity: what changed and the way back, what was called, and how the server is. */
import { Link, Redirect, useParams } from "wouter";
import { useMe } from "@/api/hooks";
import classes from "./activity.module.css";
import { Calls } from "./ui/calls";
import { Changes } from "./ui/changes";
import { Health } from "./ui/health";

const VIEWS = [
  { id: "changes", label: "Changes", view: Changes, isOfPerson: true },
  { id: "calls", label: "Calls", view: Calls, isOfPerson: false },
  { id: "health", label: "Health", view: Health, isOfPerson: true },
] as const;

export default function ActivityPage() {
  const { view } = useParams<{ view?: string }>();
  const me = useMe();
  const views = VIEWS.filter((each) => me.kind === "person" || !each.isOfPerson);
  const current = views.find((each) => each.id === view);
  if (!current) return <Redirect to={`/activity/${views[0]?.id ?? "calls"}`} replace />;
  const View = current.view;
  return (
    <div className={classes.page}>
      <header className={classes.head}>
        <h1 className="hf-visually-hidden">Activity</h1>
        <nav className={classes.tabs} aria-label="Activity">
          {views.map((each) => (
            <Link key={each.id} to={`/activity/${each.id}`} className={classes.tab ?? ""} aria-current={each === current ? "page" : undefined}>
              {each.label}
            </Link>
          ))}
        </nav>
      </header>
      <View />
    </div>
  );
}
