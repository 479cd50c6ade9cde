import type { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';
import { SIGNAL_CHANNEL, type SignalChannel } from './signal-channel.js';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/**
 * PUBLISH and SUBSCRIBE in a cluster (D51), whose nodes pass on to each other what is published. It subscribes at any of
 * them; ioredis's own subscriber of a cluster would try dead nodes without a pause.
 */
export class ClusterChannel implements SignalChannel {
  private heard: (text: string) => void = () => undefined;
  private subscriber: Redis | null = null;
  private timer: NodeJS.Timeout | null = null;
  private pauseMs = FIRST_PAUSE_MS;
  private isClosed = false;

  constructor(
    private readonly cluster: Cluster,
    private readonly logger: Logger,
  ) {}

  async send(text: string): Promise<void> {
    await this.cluster.publish(SIGNAL_CHANNEL, text);
  }

  listen(heard: (text: string) => void): void {
    this.heard = heard;
    // One that has left the cluster, or cannot be reached by it, hears nothing, and keeps its connections.
    this.cluster.on('-node', (node: Redis) => this.leave(node));
    this.subscribe();
  }

  close(): Promise<void> {
    this.isClosed = true;
    if (this.timer) clearTimeout(this.timer);
    this.subscriber?.disconnect();
    return Promise.resolve();
  }

  private subscribe(): void {
    const nodes = this.cluster.nodes();
    const node = nodes[Math.floor(Math.random() * nodes.length)];
    if (!node) return this.subscribeLater();
    // A connection that subscribes takes no other command.
    const subscriber = node.duplicate({ retryStrategy: () => null, readOnly: false });
    this.subscriber = subscriber;
    subscriber.on('error', () => undefined);
    subscriber.on('message', (_channel, text) => this.heard(text));
    subscriber.once('end', () => this.lost(subscriber));
    subscriber.subscribe(SIGNAL_CHANNEL).then(
      () => (this.pauseMs = FIRST_PAUSE_MS),
      () => subscriber.disconnect(),
    );
  }

  private leave({ options: { host, port } }: Redis): void {
    const own = this.subscriber?.options;
    if (own?.host === host && own?.port === port) this.subscriber?.disconnect();
  }

  private lost(subscriber: Redis): void {
    if (this.subscriber !== subscriber || this.isClosed) return;
    this.subscriber = null;
    this.logger.warn(
      { event: 'signals.connection_lost', retryMs: this.pauseMs },
      'signals are not heard; the sweeps find the work meanwhile',
    );
    this.subscribeLater();
  }

  private subscribeLater(): void {
    this.timer = setTimeout(() => this.subscribe(), this.pauseMs);
    this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_PAUSE_MS);
  }
}
