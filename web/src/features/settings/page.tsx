/** Settings: this browser, how clients are connected, the policy, and who is signed in. */
import { Link, Redirect, useParams } from "wouter";
import { useMe } from "@/api/hooks";
import classes from "./settings.module.css";
import { Browser } from "./ui/browser";
import { Connect } from "./ui/connect";
import { Policy } from "./ui/policy";
import { Sessions } from "./ui/sessions";

const VIEWS = [
  { id: "browser", label: "This browser", view: Browser, isOfPerson: false },
  { id: "connect", label: "Connect", view: Connect, isOfPerson: false },
  { id: "policy", label: "Policy", view: Policy, isOfPerson: true },
  { id: "sessions", label: "Sessions", view: Sessions, isOfPerson: false },
] as const;

export default function SettingsPage() {
  const { view } = useParams<{ view?: string }>();
  const me = useMe();
  const views = VIEWS.filter((each) => me.kind === "person" || !each.isOfPerson);
  const current = views.find((each) => each.id === view);
  if (!current) return <Redirect to="/settings/browser" replace />;
  const View = current.view;
  return (
    <div className={classes.page}>
      <header className={classes.head}>
        <h1 className="hf-visually-hidden">Settings</h1>
        <nav className={classes.tabs} aria-label="Settings">
          {views.map((each) => (
            <Link key={each.id} to={`/settings/${each.id}`} className={classes.tab ?? ""} aria-current={each === current ? "page" : undefined}>
              {each.label}
            </Link>
          ))}
        </nav>
      </header>
      <div className={classes.body}>
        <View />
      </div>
    </div>
  );
}
