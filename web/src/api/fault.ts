/** An error that the server answered, in its words; `retryable` says whether the same call may succeed later. */
export class ApiFault extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryable: boolean,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

export const UNREACHABLE = "UNREACHABLE";

/** Return the fault that an answer's status and body stand for, whatever the body is. */
export function faultOf(status: number, body: unknown): ApiFault {
  const error = isRecord(body) && isRecord(body["error"]) ? body["error"] : {};
  const { code, message, retryable, ...details } = error;
  return new ApiFault(
    status,
    typeof code === "string" ? code : `HTTP_${status}`,
    typeof message === "string" ? message : `The server answered with status ${status}.`,
    retryable === true || (retryable === undefined && status >= 502),
    details,
  );
}

export function unreachable(): ApiFault {
  return new ApiFault(0, UNREACHABLE, "The server does not answer. It may be starting again.", true);
}

/** Return any thrown value as a fault. */
export function asFault(error: unknown): ApiFault {
  if (error instanceof ApiFault) return error;
  return new ApiFault(0, "PAGE_ERROR", error instanceof Error ? error.message : String(error), false);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
