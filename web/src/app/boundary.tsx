import { Component, type ReactNode } from "react";
import { Fault } from "@/shared/states";
import classes from "./app.module.css";

/** Shows a fault of a page in its place, so that the rest of the console goes on. */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <div className={classes.page}>
        <Fault error={this.state.error} />
      </div>
    );
  }
}
