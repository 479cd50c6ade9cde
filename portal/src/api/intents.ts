/** An answer that does not come within this time is no longer waited for: who presses then means it anew. */
const KEPT_MS = 600_000;

type Intent = { call: string; key: string; since: number };

/**
 * The `Idempotency-Key` of each change that has no answer yet. One that is asked for again gets the same key, whether the
 * network lost the answer or somebody pressed twice: the server carries it out once, and answers as it did the first time.
 */
export class Intents {
  private readonly open = new Map<string, Intent>();

  constructor(private readonly now: () => number = Date.now) {}

  /** The key for a change; of each target only the latest change is kept. */
  keyOf(path: string, body: unknown): string {
    const target = targetOf(path);
    const call = callOf(path, body);
    const last = this.open.get(target);
    if (last?.call === call && this.now() - last.since < KEPT_MS) return last.key;
    const key = newKey();
    this.open.set(target, { call, key, since: this.now() });
    return key;
  }

  /** An answer has come: the same change is from now on another one. */
  settle(path: string, body: unknown): void {
    if (this.open.get(targetOf(path))?.call === callOf(path, body)) this.open.delete(targetOf(path));
  }
}

/** `crypto.randomUUID` is missing where a page came over plain HTTP. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );

const callOf = (path: string, body: unknown): string => `${path} ${JSON.stringify(body ?? {})}`;

/** On and off are of one switch: who has turned it back does not mean the turn before. */
const targetOf = (path: string): string => path.replace(/\/(enable|disable)$/, '/switch');
