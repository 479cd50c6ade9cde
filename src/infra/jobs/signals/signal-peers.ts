/** A worker process without a message for this long is no longer a peer. */
const FORGET_AFTER_MS = 5_000;

interface Peer {
  /** Its load per queue that it works on. */
  readonly loads: Readonly<Record<string, number>>;
  readonly seenAtMs: number;
}

/** A process that works on a queue, and the number of its groups. */
export interface LoadedPeer {
  readonly id: string;
  readonly load: number;
}

/**
 * The worker processes known to this one, including itself. Every signal reaches all of them. For each group one
 * process claims first, so that the others do not claim in vain. If views differ briefly, two processes claim at once,
 * or all claim a little later.
 */
export class SignalPeers {
  private readonly peers = new Map<string, Peer>();

  /** @param loads load per queue; empty: it has stopped */
  saw(id: string, loads: Readonly<Record<string, number>>, nowMs: number): void {
    if (Object.keys(loads).length === 0) this.peers.delete(id);
    else this.peers.set(id, { loads, seenAtMs: nowMs });
  }

  /** Peers that work on the queue. */
  list(queue: string, nowMs: number): readonly LoadedPeer[] {
    return [...this.peers].flatMap(([id, { loads, seenAtMs }]) => {
      const load = loads[queue];
      return load === undefined || nowMs - seenAtMs > FORGET_AFTER_MS ? [] : [{ id, load }];
    });
  }

  /** Whether `id` is the first of all peers to take the queue's group, not counting `except`, which has no room. */
  isFirst(id: string, queue: string, group: string, except: string, nowMs: number): boolean {
    const own = rankOf(id, group);
    for (const [peer, { loads, seenAtMs }] of this.peers) {
      if (peer === id || peer === except || loads[queue] === undefined) continue;
      if (nowMs - seenAtMs > FORGET_AFTER_MS) this.peers.delete(peer);
      else if (rankOf(peer, group) > own) return false;
    }
    return true;
  }
}

/** FNV-1a: equal in every process, with a different order of the peers for each group. */
function rankOf(id: string, group: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${group} ${id}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  return hash >>> 0;
}
