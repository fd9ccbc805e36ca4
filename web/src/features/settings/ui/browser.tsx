/** What a reader chose for this browser: theme, diff colours, single keys, notifications. Nothing of it leaves the browser. */
import { Radio, Switch, useMantineColorScheme } from "@mantine/core";
import { useState } from "react";
import { useMe } from "@/api/hooks";
import { areKeysOn, switchKeys } from "@/shared/keys";
import { notificationChoice, turnNotificationsOff, turnNotificationsOn } from "@/shared/notify";
import { prefer, usePreferences } from "@/shared/preferences";
import classes from "../settings.module.css";

export function Browser() {
  const me = useMe();
  return (
    <>
      <Theme />
      {me.kind === "person" && <DiffColours />}
      <KeysSection />
      {me.kind === "person" && <Notifications />}
    </>
  );
}

function Theme() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <section className={classes.section}>
      <Radio.Group label="Theme" value={colorScheme} onChange={setColorScheme}>
        <div className={classes.choices}>
          <Radio value="auto" label="As the system has it" />
          <Radio value="light" label="Light" />
          <Radio value="dark" label="Dark" />
        </div>
      </Radio.Group>
    </section>
  );
}

function DiffColours() {
  const { diffColours } = usePreferences();
  return (
    <section className={classes.section}>
      <Radio.Group
        label="Colours of added and removed"
        description="The sign and the border say it too."
        value={diffColours}
        onChange={(value) => prefer({ diffColours: value })}
      >
        <div className={classes.choices}>
          <Radio value="green-red" label="Green and red" />
          <Radio value="blue-orange" label="Blue and orange" />
        </div>
      </Radio.Group>
      <div className={classes.sample} aria-hidden>
        <div data-kind="removed">
          <span>−</span> teh plan
        </div>
        <div data-kind="added">
          <span>+</span> the plan
        </div>
      </div>
    </section>
  );
}

function KeysSection() {
  const [isOn, setOn] = useState(areKeysOn);
  return (
    <section className={classes.section}>
      <Switch
        label="Single keys"
        description="Off, only Ctrl K, Ctrl Enter, Enter, Escape and Tab do something. ? shows the map of keys."
        checked={isOn}
        onChange={(event) => {
          switchKeys(event.currentTarget.checked);
          setOn(event.currentTarget.checked);
        }}
      />
    </section>
  );
}

function Notifications() {
  const canNotify = "Notification" in window;
  const [isOn, setOn] = useState(() => canNotify && notificationChoice() === "on" && Notification.permission === "granted");
  const [isRefused, setRefused] = useState(() => canNotify && Notification.permission === "denied");
  const change = async (wanted: boolean) => {
    if (!wanted) {
      turnNotificationsOff();
      setOn(false);
      return;
    }
    const isAllowed = await turnNotificationsOn();
    setOn(isAllowed);
    setRefused(!isAllowed);
  };
  return (
    <section className={classes.section}>
      <Switch
        label="Tell me when something waits while this tab is hidden"
        description="The notification names the file and nothing of its content."
        checked={isOn}
        disabled={!canNotify}
        onChange={(event) => void change(event.currentTarget.checked)}
      />
      {isRefused && <p className={classes.hint}>This browser refuses notifications for this address: allow them in its own settings.</p>}
      {!canNotify && <p className={classes.hint}>This browser has no notifications here.</p>}
    </section>
  );
}
