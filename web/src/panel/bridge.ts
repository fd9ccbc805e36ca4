/**
 * The panel's side of MCP Apps (2026-01-26): JSON-RPC with the host that shows this page, by messages between windows.
 * It listens to nobody but the host, and knows nothing of reviews and plans.
 */

const PROTOCOL_VERSION = "2026-01-26";

type Json = Record<string, unknown>;

export interface ToolResult {
  content?: { type: string; text?: string }[];
  structuredContent?: Json;
  isError?: boolean;
  _meta?: Json;
}

export interface HostContext {
  theme?: "light" | "dark";
}

interface HostCapabilities {
  openLinks?: Json;
  serverTools?: Json;
  message?: Json;
  updateModelContext?: Json;
}

export interface BridgeHandlers {
  onInput: (args: Json) => void;
  onResult: (result: ToolResult) => void;
  onCancelled: (reason: string) => void;
  onContext: (context: HostContext) => void;
}

/** A tool's error, with the code that it has. */
export class ToolFault extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

interface Waiting {
  resolve: (result: Json) => void;
  reject: (fault: Error) => void;
}

export class Bridge {
  private capabilities: HostCapabilities = {};
  private nextId = 1;
  private readonly waiting = new Map<number, Waiting>();

  constructor(
    private readonly host: Window,
    private readonly handlers: BridgeHandlers,
  ) {}

  /** Say hello to the host; what it has for the panel comes to the handlers from then on. */
  async connect(): Promise<void> {
    window.addEventListener("message", this.hear);
    const hello = await this.request("ui/initialize", {
      appInfo: { name: "holdfast-panel", version: "1" },
      appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
      protocolVersion: PROTOCOL_VERSION,
    });
    this.capabilities = (hello["hostCapabilities"] as HostCapabilities | undefined) ?? {};
    this.handlers.onContext((hello["hostContext"] as HostContext | undefined) ?? {});
    this.post({ method: "ui/notifications/initialized", params: {} });
    this.reportSize();
  }

  get canOpenLinks(): boolean {
    return this.capabilities.openLinks !== undefined;
  }

  /** Call a tool of the server through the host, and return its data. Throws ToolFault. */
  async callTool<Answer>(name: string, args: Json): Promise<Answer> {
    if (!this.capabilities.serverTools) throw new ToolFault("UNAVAILABLE", "This host lets panels call no tools.");
    const result = (await this.request("tools/call", { name, arguments: args })) as ToolResult;
    if (result.isError) throw faultOf(result);
    if (!result.structuredContent) throw new ToolFault("UNAVAILABLE", "The host did not pass the answer on.");
    return result.structuredContent as Answer;
  }

  /** Ask the host to open a page in the browser; returns whether it did. */
  async openLink(url: string): Promise<boolean> {
    const result = await this.request("ui/open-link", { url }).catch(() => ({ isError: true }));
    return result["isError"] !== true;
  }

  /** Tell the model what was decided: as a message, which it answers, else as context of its next turn. */
  async tell(text: string): Promise<boolean> {
    const content = [{ type: "text", text }];
    if (this.capabilities.message && (await this.accepts("ui/message", { role: "user", content }))) return true;
    return this.capabilities.updateModelContext !== undefined && this.accepts("ui/update-model-context", { content });
  }

  private async accepts(method: string, params: Json): Promise<boolean> {
    const result = await this.request(method, params).catch(() => ({ isError: true }));
    return result["isError"] !== true;
  }

  private request(method: string, params: Json): Promise<Json> {
    const id = this.nextId;
    this.nextId += 1;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.post({ id, method, params });
    });
  }

  private post(message: Json): void {
    // A host shows panels beneath an origin that they cannot know; what is sent goes to its window and no other.
    this.host.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  private readonly hear = (event: MessageEvent<unknown>): void => {
    if (event.source !== this.host || typeof event.data !== "object" || event.data === null) return;
    const message = event.data as { id?: number; method?: string; params?: Json; result?: Json; error?: { message?: string } };
    if (message.method !== undefined) this.serve(message.method, message.params ?? {}, message.id);
    else if (message.id !== undefined) this.settle(message.id, message.result, message.error);
  };

  private settle(id: number, result: Json | undefined, error: { message?: string } | undefined): void {
    const request = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) request?.reject(new ToolFault("UNAVAILABLE", error.message ?? "The host refused this."));
    else request?.resolve(result ?? {});
  }

  private serve(method: string, params: Json, id: number | undefined): void {
    if (method === "ui/notifications/tool-input") this.handlers.onInput((params["arguments"] as Json | undefined) ?? {});
    else if (method === "ui/notifications/tool-result") this.handlers.onResult(params);
    else if (method === "ui/notifications/tool-cancelled") this.handlers.onCancelled(typeof params["reason"] === "string" ? params["reason"] : "");
    else if (method === "ui/notifications/host-context-changed") this.handlers.onContext(params);
    if (id === undefined) return;
    const isKnown = method === "ping" || method === "ui/resource-teardown";
    this.post(isKnown ? { id, result: {} } : { id, error: { code: -32601, message: `A panel has no ${method}` } });
  }

  private reportSize(): void {
    const root = document.body;
    const observer = new ResizeObserver(() => {
      const { width, height } = root.getBoundingClientRect();
      this.post({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
    });
    observer.observe(root);
  }
}

function faultOf(result: ToolResult): ToolFault {
  const { code, message } = result.structuredContent ?? {};
  const text = result.content?.find((block) => block.type === "text")?.text;
  return new ToolFault(typeof code === "string" ? code : "FAILED", typeof message === "string" ? message : (text ?? "It failed."));
}
