import { randomBytes } from 'node:crypto';

/** Id prefixes (D10); the part after the underscore is a ULID. */
export type IdPrefix =
  | 'pkg'
  | 'ord'
  | 'esim'
  | 'top'
  | 'atp'
  | 'txn'
  | 'evt'
  | 'dlv'
  | 'whe'
  | 'key'
  | 'ptn'
  | 'req'
  | 'rpl'
  | 'blg'
  | 'aud'
  | 'alr'
  | 'syn'
  | 'prv'
  | 'ps'
  | 'rfr'
  | 'ilk';

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const ULID = '[0-9A-HJKMNP-TV-Z]{26}';

// Reading the pool in slices saves a system call per id on the request path.
const POOL_BYTES = 4096;
const RANDOM_BYTES = 16;
let pool = Buffer.alloc(0);
let offset = 0;

function takeRandom(): Buffer {
  if (offset + RANDOM_BYTES > pool.length) {
    pool = randomBytes(POOL_BYTES);
    offset = 0;
  }
  offset += RANDOM_BYTES;
  return pool.subarray(offset - RANDOM_BYTES, offset);
}

// Many ids are created within one millisecond and share the text of its time.
let timeMs = -1;
let timeText = '';

function encodeTime(nowMs: number): string {
  if (nowMs === timeMs) return timeText;
  let text = '';
  for (let rest = nowMs, i = 0; i < 10; i++) {
    text = CROCKFORD.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  timeMs = nowMs;
  timeText = text;
  return text;
}

/** A ULID: 48 bits of Unix milliseconds, then 80 random bits, in Crockford base32. */
export function ulid(nowMs: number = Date.now()): string {
  let random = '';
  for (const byte of takeRandom()) random += CROCKFORD.charAt(byte & 31);
  return encodeTime(nowMs) + random;
}

/** Crockford base32, five bits per character, padded with zero bits. */
export function toBase32(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += CROCKFORD.charAt((held >> (bits - 5)) & 31);
    held &= 0xff;
  }
  return bits === 0 ? text : text + CROCKFORD.charAt((held << (5 - bits)) & 31);
}

/** A new id such as `ord_01JD...`. Ids sort by creation to the millisecond, not within one. */
export function newId(prefix: IdPrefix, nowMs?: number): string {
  return `${prefix}_${ulid(nowMs)}`;
}

/** A bound in byte order: ids created at `at` or later are greater, earlier ones smaller. */
export function idFloor(prefix: IdPrefix, at: Date): string {
  return `${prefix}_${encodeTime(Math.max(0, at.getTime()))}`;
}

/** Creation time of an id, by the clock of the process that created it. */
export function timeOfId(id: string): Date {
  const digits = id.slice(-26, -16);
  return new Date([...digits].reduce((ms, digit) => ms * 32 + CROCKFORD.indexOf(digit), 0));
}

const ID_PATTERNS = new Map<IdPrefix, RegExp>();

/** Whether `value` has the form of `newId(prefix)`. The catalog validates its own ids. */
export function isId(prefix: IdPrefix, value: string): boolean {
  let pattern = ID_PATTERNS.get(prefix);
  if (!pattern) ID_PATTERNS.set(prefix, (pattern = new RegExp(`^${prefix}_${ULID}$`)));
  return pattern.test(value);
}
