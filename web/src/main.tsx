import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "@/app/base.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { setNonce } from "get-nonce";
import { createRoot } from "react-dom/client";
import { App } from "@/app/app";
import { theme, variables } from "@/app/theme";
import { cspNonce } from "@/shared/nonce";
import { applyDiffColours } from "@/shared/preferences";

setNonce(cspNonce());
applyDiffColours();

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element #root");
createRoot(root).render(
  <MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto" getStyleNonce={cspNonce}>
    <App />
    <Notifications position="bottom-right" limit={4} containerWidth={400} />
  </MantineProvider>,
);
