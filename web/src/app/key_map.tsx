import { Modal, Switch } from "@mantine/core";
import { useState } from "react";
import { areKeysOn, switchKeys, useActions } from "@/shared/keys";
import { Keys } from "@/shared/states";
import classes from "./app.module.css";

/** The map of keys (`?`): what this page and the console listen to, and the switch that silences single keys. */
export function KeyMap({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const layers = useActions();
  const [isOn, setOn] = useState(areKeysOn);
  return (
    <Modal opened={isOpen} onClose={onClose} title="Keys" closeButtonProps={{ "aria-label": "Close" }} size={560}>
      <Switch
        label="Single keys"
        description="Off, only Ctrl K, Enter, Escape and Tab do something."
        checked={isOn}
        onChange={(event) => {
          switchKeys(event.currentTarget.checked);
          setOn(event.currentTarget.checked);
        }}
      />
      {layers.map((layer) => (
        <section key={layer.group} className={classes.keyGroup}>
          <h3>{layer.group}</h3>
          <dl>
            {layer.actions.map((action) => (
              <div key={action.keys}>
                <dt>{action.label}</dt>
                <dd>
                  <span className="hf-visually-hidden">{action.keys}</span>
                  <Keys>{action.keys}</Keys>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <section className={classes.keyGroup}>
        <h3>Everywhere</h3>
        <dl>
          <div>
            <dt>Palette: pages, reviews, files, actions</dt>
            <dd>
              <span className="hf-visually-hidden">Ctrl K</span>
              <Keys>Ctrl K</Keys>
            </dd>
          </div>
        </dl>
      </section>
    </Modal>
  );
}
