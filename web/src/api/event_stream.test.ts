import { expect, test } from "vitest";
import { EventParser, idOf, needsResync, positionAfter, retryDelay } from "./event_stream";

test("events are cut out of chunks that end anywhere; comments are none", () => {
  const parser = new EventParser();
  const text = ': ping\n\nid: 7\nevent: review.opened\ndata: {"review_id":\ndata: "x"}\n\nevent: hello\ndata: {}\n\n';
  const events = text.split("").flatMap((char) => parser.push(char));
  expect(events).toEqual([
    { id: "7", name: "review.opened", data: '{"review_id":\n"x"}' },
    { id: "7", name: "hello", data: "{}" },
  ]);
});

test("another server, or one that is behind, makes everything stale; the same one does not", () => {
  expect(needsResync(null, { serverId: "a", seq: 5 })).toBe(false);
  expect(needsResync({ serverId: "a", seq: 5 }, { serverId: "a", seq: 9 })).toBe(false);
  expect(needsResync({ serverId: "a", seq: 5 }, { serverId: "b", seq: 9 })).toBe(true);
  expect(needsResync({ serverId: "a", seq: 5 }, { serverId: "a", seq: 2 })).toBe(true);
});

test("the id of an event is what the next stream is resumed after", () => {
  const seen = positionAfter({ serverId: "a1b2", seq: 3 }, "a1b2-17");
  expect(seen && idOf(seen)).toBe("a1b2-17");
  expect(positionAfter(seen, "")).toBe(seen);
  expect(positionAfter(seen, "17")).toBe(seen);
});

test("attempts come after half a second at first and five at most", () => {
  expect(retryDelay(0, 1)).toBe(500);
  expect(retryDelay(9, 1)).toBe(5000);
});
