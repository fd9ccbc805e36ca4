import { describe, expect, it } from "vitest";
import { formatDuration } from "@/shared/times";
import { commandOf, conditionsOf, countNew } from "./calls";

const NOW = Date.UTC(2026, 10, 19, 12);

describe("calls of an address", () => {
  it("are those of agents in the last day when it names nothing", () => {
    expect(conditionsOf(new URLSearchParams(), NOW)).toEqual({ kind: "agent", since: "2026-11-18T12:00:00.000Z" });
    expect(commandOf(new URLSearchParams())).toBe("holdfast calls --kind agent --since 24h");
  });

  it("are narrowed by every filter, and what is no filter is left out", () => {
    const query = new URLSearchParams("tool=edit_file&status=error&client=my+desk&kind=all&since=all&code=x");
    expect(conditionsOf(query, NOW)).toEqual({ tool: "edit_file", status: "error", client: "my desk" });
    expect(commandOf(query)).toBe("holdfast calls --tool edit_file --status error --client 'my desk'");
    expect(conditionsOf(new URLSearchParams("status=odd&since=never"), NOW)).toEqual({ kind: "agent" });
  });

  it("that are newer than the list wait behind the chip", () => {
    expect(countNew(5, [{ position: 7 }, { position: 6 }, { position: 5 }])).toBe(2);
    expect(countNew(undefined, [{ position: 1 }])).toBe(1);
  });

  it("say how long they took", () => {
    expect([0.42, 41.3, 2310].map(formatDuration)).toEqual(["0.4 ms", "41 ms", "2.3 s"]);
  });
});
