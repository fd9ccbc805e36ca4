/** Pure: the text of an event stream, cut into events as HTML's specification says, and what a gap in them means. */

export interface StreamEvent {
  id: string;
  name: string;
  data: string;
}

/** Cuts chunks of text into events; a chunk may end anywhere. Comments only show that the stream lives. */
export class EventParser {
  private rest = "";
  private id = "";
  private name = "";
  private data: string[] = [];

  push(chunk: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    const lines = (this.rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0 || this.name !== "") {
          events.push({ id: this.id, name: this.name || "message", data: this.data.join("\n") });
        }
        this.name = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") this.data.push(value);
      else if (field === "event") this.name = value;
      else if (field === "id" && !value.includes("\0")) this.id = value;
    }
    return events;
  }
}

/** What the page knows of the stream: which server it listened to, and how far. */
export interface StreamPosition {
  serverId: string;
  seq: number;
}

/** Return the id of the last event that this page saw, as the server gave it: what it resumes after. */
export function idOf(position: StreamPosition): string {
  return `${position.serverId}-${position.seq}`;
}

/** Return the position after an event; an event without an id moves nothing. */
export function positionAfter(known: StreamPosition | null, id: string): StreamPosition | null {
  const [, serverId, seq] = /^([^-]+)-(\d+)$/.exec(id) ?? [];
  return serverId === undefined ? known : { serverId, seq: Number(seq) };
}

/**
 * Return whether everything must be asked anew when a server greets: it is another process than before, or it is behind
 * what this page saw. Events that were missed in between are either sent again or answered with `resync`.
 */
export function needsResync(known: StreamPosition | null, hello: StreamPosition): boolean {
  return known !== null && (known.serverId !== hello.serverId || hello.seq < known.seq);
}

/** Return how long to wait before the next attempt: 0.5 s, doubled each time up to 5 s, with a random share. */
export function retryDelay(attempt: number, random: number): number {
  return Math.min(5000, 500 * 2 ** attempt) * (0.75 + 0.25 * random);
}
