/**
 * What changes on the server, for every tab, over one stream: a browser opens six connections to a server, so a stream in
 * each tab would stop the seventh dead. The tab that holds a Web Lock reads it and tells the others by BroadcastChannel.
 */
import { request } from "./client";
import { ApiFault, isRecord } from "./fault";
import { EventParser, idOf, needsResync, positionAfter, retryDelay, type StreamPosition } from "./event_stream";

export type Connection = "connecting" | "live" | "reconnecting" | "signed-out";

/** One event of the server: its name, and its payload of ids. */
export interface ServerEvent {
  name: string;
  data: Record<string, unknown>;
  /** Whether this tab is the one that reads the stream: what is to happen once for all tabs happens there. */
  isLeader: boolean;
}

type Message =
  | { type: "event"; name: string; data: Record<string, unknown> }
  | { type: "state"; connection: Connection; position: StreamPosition | null; version: string }
  | { type: "who" };

const CHANNEL = "holdfast.events";
const SILENCE_MS = 40_000;

export class Events {
  connection: Connection = "connecting";
  version = "";
  private position: StreamPosition | null = null;
  private isLeader = false;
  private readonly channel = new BroadcastChannel(CHANNEL);
  private readonly stopped = new AbortController();
  private readonly listeners = new Set<(event: ServerEvent) => void>();
  private readonly watchers = new Set<() => void>();
  private wake: () => void = () => undefined;

  start(): void {
    this.channel.onmessage = (message: MessageEvent<Message>) => this.hear(message.data);
    this.channel.postMessage({ type: "who" } satisfies Message);
    window.addEventListener("online", () => this.wake());
    navigator.locks
      .request(CHANNEL, { signal: this.stopped.signal }, () => this.lead())
      .catch((error: unknown) => {
        if (!this.stopped.signal.aborted) throw error;
      });
  }

  stop(): void {
    this.stopped.abort();
    this.channel.close();
  }

  subscribe(listener: (event: ServerEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** For useSyncExternalStore: call `watcher` when `connection` changes. */
  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  private hear(message: Message): void {
    if (message.type === "who") {
      if (this.isLeader) this.tellState();
    } else if (message.type === "state") {
      this.position = message.position;
      this.version = message.version;
      this.become(message.connection);
    } else {
      this.deliver(message.name, message.data);
    }
  }

  private tellState(): void {
    this.channel.postMessage({
      type: "state",
      connection: this.connection,
      position: this.position,
      version: this.version,
    } satisfies Message);
  }

  private become(connection: Connection): void {
    if (connection === this.connection) return;
    this.connection = connection;
    for (const watcher of this.watchers) watcher();
  }

  private deliver(name: string, data: Record<string, unknown>): void {
    for (const listener of this.listeners) listener({ name, data, isLeader: this.isLeader });
  }

  private publish(name: string, data: Record<string, unknown>): void {
    this.channel.postMessage({ type: "event", name, data } satisfies Message);
    this.deliver(name, data);
  }

  private setState(connection: Connection): void {
    this.become(connection);
    this.tellState();
  }

  /** Read the stream for as long as this tab lives; the lock passes to another tab when it is closed. */
  private async lead(): Promise<void> {
    this.isLeader = true;
    for (let attempt = 0; !this.stopped.signal.aborted; attempt += 1) {
      try {
        await this.read(() => (attempt = 0));
      } catch (error) {
        if (error instanceof ApiFault && error.status === 401) {
          this.setState("signed-out");
          return;
        }
      }
      this.setState("reconnecting");
      await this.pause(retryDelay(attempt, Math.random()));
    }
  }

  private async read(onHello: () => void): Promise<void> {
    const ended = new AbortController();
    const signal = AbortSignal.any([ended.signal, this.stopped.signal]);
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.position) headers["Last-Event-ID"] = idOf(this.position);
    let silence = setTimeout(() => ended.abort(), SILENCE_MS);
    try {
      const response = await request("/api/events", { headers, signal });
      if (!response.body) return;
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(() => ended.abort(), SILENCE_MS);
        for (const event of parser.push(value)) {
          const data: unknown = JSON.parse(event.data || "{}");
          if (event.name === "bye") return;
          this.take(event.name, event.id, isRecord(data) ? data : {}, onHello);
        }
      }
    } finally {
      clearTimeout(silence);
      ended.abort();
    }
  }

  private take(name: string, id: string, data: Record<string, unknown>, onHello: () => void): void {
    if (name === "hello") {
      onHello();
      const hello = { serverId: String(data["server_id"]), seq: Number(data["seq"] ?? 0) };
      const isStale = needsResync(this.position, hello);
      this.position = this.position && !isStale ? { ...this.position } : hello;
      this.version = typeof data["version"] === "string" ? data["version"] : "";
      this.setState("live");
      if (isStale) this.publish("resync", { reason: "another server" });
      this.publish("hello", data);
      return;
    }
    this.position = positionAfter(this.position, id);
    this.publish(name, data);
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
