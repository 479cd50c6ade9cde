/** An order, an eSIM or a top-up as the API shows it, or an event about one. */
export interface Versioned {
  readonly id: string;
  readonly version?: number;
  readonly data?: object;
}

/**
 * The newer of two states of one object, or of two events about it, whichever came first: webhooks come in any order,
 * and more than once. Events of one change have the same version; their ids tell which is the later. The one event
 * without a version, `esim.activated`, is an eSIM's first.
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

/** The id of what an event is about: what its version counts the changes of. */
export function subjectOf({ type, data }: EventLike): string {
  const { topup_id, esim_id, order_id } = data as { topup_id?: string; esim_id?: string; order_id: string };
  return topup_id ?? (type.startsWith('esim.') ? esim_id : undefined) ?? order_id;
}
