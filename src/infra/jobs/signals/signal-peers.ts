/** A worker process that has said nothing for so long is no peer any more. */
const FORGET_AFTER_MS = 5_000;

interface Peer {
  /** Its load of each queue that it works on. */
  readonly loads: Readonly<Record<string, number>>;
  readonly seenAtMs: number;
}

/** A process that works on a queue, with how many groups it has of it. */
export interface LoadedPeer {
  readonly id: string;
  readonly load: number;
}

/**
 * The worker processes that this one has heard of, itself included. Each signal reaches all of them: that one of them
 * takes a group first keeps the others from claiming what they would not find. Views may differ for a moment: then two
 * claim at once, or all a little later.
 */
export class SignalPeers {
  private readonly peers = new Map<string, Peer>();

  /** @param loads of the queues that it works on; none: it has stopped */
  saw(id: string, loads: Readonly<Record<string, number>>, nowMs: number): void {
    if (Object.keys(loads).length === 0) this.peers.delete(id);
    else this.peers.set(id, { loads, seenAtMs: nowMs });
  }

  /** Those that work on the queue. */
  list(queue: string, nowMs: number): readonly LoadedPeer[] {
    return [...this.peers].flatMap(([id, { loads, seenAtMs }]) => {
      const load = loads[queue];
      return load === undefined || nowMs - seenAtMs > FORGET_AFTER_MS ? [] : [{ id, load }];
    });
  }

  /** Whether `id` is to take the group of the queue first, of all peers but `except`, which has no room. */
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

/** FNV-1a: the same in every process, and for each group another order of the peers. */
function rankOf(id: string, group: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${group} ${id}`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  return hash >>> 0;
}
