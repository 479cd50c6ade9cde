/** Bodies, chunked ones too (D9). */
export const MAX_BODY_BYTES = 65_536;
export const MAX_URL_LENGTH = 4096;
/** Request line and header lines together, else 431. */
export const MAX_HEADER_BYTES = 16_384;
export const MAX_JSON_DEPTH = 32;
export const MAX_JSON_KEYS = 1000;

export const DEFAULT_REQUEST_TIMEOUT_MS = 10_000;
/** Longer than the usual 60 s of a proxy in front, so that the proxy is the one that hangs up. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** How often Node looks for requests that take too long. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;

/** What is still taken from a caller whose request was refused unread, so that it can read why. */
export const LINGER_MS = 1000;
export const LINGER_BYTES = 1_048_576;
