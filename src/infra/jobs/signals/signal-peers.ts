/** A worker process that has said nothing for so long is no peer any more. */
const FORGET_AFTER_MS = 5_000;

interface Peer {
  readonly queues: readonly string[];
  readonly seenAtMs: number;
}

/**
 * The worker processes that this one has heard of, itself included. Each signal reaches all of them: that one of them
 * takes a group first keeps the others from claiming what they would not find. Views may differ for a moment: then two
 * claim at once, or all a little later.
 */
export class SignalPeers {
  private readonly peers = new Map<string, Peer>();

  /** @param queues that it works on; none: it has stopped */
  saw(id: string, queues: readonly string[], nowMs: number): void {
    if (queues.length === 0) this.peers.delete(id);
    else this.peers.set(id, { queues, seenAtMs: nowMs });
  }

  /** Whether `id` is to take the group of the queue first, of all peers but `except`, which has no room. */
  isFirst(id: string, queue: string, group: string, except: string, nowMs: number): boolean {
    const own = rankOf(id, group);
    for (const [peer, { queues, seenAtMs }] of this.peers) {
      if (peer === id || peer === except || !queues.includes(queue)) continue;
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
