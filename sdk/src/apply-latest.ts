/** An order, an eSIM or a top-up as the API returns it, or an event about one. */
export interface Versioned {
  readonly id: string;
  readonly version?: number;
  readonly data?: object;
}

/**
 * Returns the newer of two states of one object, or of two events about it. Use it because webhooks can arrive in any
 * order and more than once. Events of one change share a version; the later one has the greater id. `esim.activated` has
 * no version, because it is always an eSIM's first event. `refund.settled`, `wallet.low` and
 * `catalog.changed` have none either: the greater id is newer.
 */
export function applyLatest<T extends Versioned>(known: T | null | undefined, incoming: T): T {
  if (known == null) return incoming;
  const difference = versionOf(incoming) - versionOf(known);
  return difference > 0 || (difference === 0 && incoming.id > known.id) ? incoming : known;
}

function versionOf({ version, data }: Versioned): number {
  return version ?? (data as { version?: number } | undefined)?.version ?? 0;
}

interface EventLike {
  readonly type: string;
  readonly data: object;
}

/**
 * Returns the id of the object that an event is about. The event's version counts the changes of this object. A wallet
 * and the catalog have no id: `wallet.low` returns its currency, `catalog.changed` its type.
 */
export function subjectOf({ type, data }: EventLike): string {
  const ids = data as Partial<
    Record<'topup_id' | 'refund_request_id' | 'esim_id' | 'order_id' | 'currency', string>
  >;
  const esim = type.startsWith('esim.') ? ids.esim_id : undefined;
  return ids.topup_id ?? ids.refund_request_id ?? esim ?? ids.order_id ?? ids.currency ?? type;
}
