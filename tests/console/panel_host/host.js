// A host of panels as chats have one, of the official client and bridge. It records all that its model sees: the tools that
// are listed to it, its calls, their answers without what is for the panel, and what panels say. The test plays the model.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, getToolUiResourceUri, isToolVisibilityAppOnly, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const INFO = { name: "recording-host", version: "1.0.0" };
const UI = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } };

window.transcript = [];
window.opened = [];
window.results = [];

let client;
let tools;

window.connect = async ({ url, token, era, capabilities = UI }) => {
  client = new Client(INFO, { capabilities, versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } } });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  tools = (await client.listTools()).tools;
  window.transcript.push({ type: "tools", tools: tools.filter((tool) => !isToolVisibilityAppOnly(tool)) });
  return tools.map((tool) => tool.name);
};

// The model calls a tool; its panel is shown at once, and gets the answer when it is there.
window.callAsModel = async (name, args, { dropMeta = false, theme = "light", without = [] } = {}) => {
  const tool = tools.find((each) => each.name === name);
  const uri = tool && getToolUiResourceUri(tool);
  const bridge = uri ? await showPanel(uri, theme, without) : null;
  window.transcript.push({ type: "call", name, args });
  if (bridge) await bridge.sendToolInput({ arguments: args });
  const result = await client.callTool({ name, arguments: args });
  window.results.push(result);
  const { _meta, ...visible } = result;
  window.transcript.push({ type: "result", ...visible });
  if (bridge) await bridge.sendToolResult(dropMeta ? visible : { ...visible, _meta });
  return visible;
};

async function showPanel(uri, theme, without) {
  const { contents } = await client.readResource({ uri });
  const page = await (await fetch("/panel", { method: "POST", body: contents[0].text })).text();
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.title = uri;
  document.getElementById("panels").replaceChildren(frame);
  const capabilities = { openLinks: {}, serverTools: {}, message: { text: {} }, updateModelContext: { text: {} } };
  for (const name of without) delete capabilities[name];
  const bridge = new AppBridge(client, INFO, capabilities, { hostContext: { theme, displayMode: "inline", platform: "web" } });
  bridge.onmessage = async ({ content }) => {
    window.transcript.push({ type: "message", content });
    return {};
  };
  bridge.onupdatemodelcontext = async ({ content, structuredContent }) => {
    window.transcript.push({ type: "context", content, structuredContent });
    return {};
  };
  bridge.onopenlink = async ({ url }) => {
    window.opened.push(url);
    return {};
  };
  bridge.onsizechange = ({ height }) => {
    if (height) frame.style.height = `${height}px`;
  };
  const initialized = new Promise((resolve) => (bridge.oninitialized = () => resolve()));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.src = page;
  await initialized;
  return bridge;
}

window.isReady = true;
