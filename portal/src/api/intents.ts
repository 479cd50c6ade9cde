/** Expires after ten minutes: a later press is a new request. */
const KEPT_MS = 600_000;

type Intent = { call: string; key: string; since: number };

/**
 * The `Idempotency-Key` of each change without a response. A repeated change gets the same key, whether the network
 * lost the response or the user pressed twice: the server applies it once and returns the first response again.
 */
export class Intents {
  private readonly open = new Map<string, Intent>();

  constructor(private readonly now: () => number = Date.now) {}

  /** The key for a change; only the latest change of each target is kept. */
  keyOf(path: string, body: unknown): string {
    const target = targetOf(path);
    const call = callOf(path, body);
    const last = this.open.get(target);
    if (last?.call === call && this.now() - last.since < KEPT_MS) return last.key;
    const key = newKey();
    this.open.set(target, { call, key, since: this.now() });
    return key;
  }

  /** Call when a response has arrived. From then on, the same change counts as a new one. */
  settle(path: string, body: unknown): void {
    if (this.open.get(targetOf(path))?.call === callOf(path, body)) this.open.delete(targetOf(path));
  }
}

/** `crypto.randomUUID` does not exist on a page served over plain HTTP. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );

const callOf = (path: string, body: unknown): string => `${path} ${JSON.stringify(body ?? {})}`;

/** Enable and disable belong to one switch: turning it back replaces the earlier change. */
const targetOf = (path: string): string => path.replace(/\/(enable|disable)$/, '/switch');
