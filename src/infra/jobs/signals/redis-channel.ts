import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { FIRST_PAUSE_MS, MAX_PAUSE_MS, SIGNAL_CHANNEL, type SignalChannel } from './signal-channel.js';

/** PUBLISH and SUBSCRIBE (D51); ioredis reconnects and resubscribes by itself. */
export class RedisChannel implements SignalChannel {
  private subscriber: Redis | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly redis: Redis,
    private readonly logger: Logger,
  ) {}

  async send(text: string): Promise<void> {
    await this.redis.publish(SIGNAL_CHANNEL, text);
  }

  listen(onMessage: (text: string) => void): void {
    // A subscribed connection accepts no other command.
    this.subscriber = this.redis.duplicate();
    this.subscriber.on('error', () => undefined);
    this.subscriber.on('message', (_channel, text) => onMessage(text));
    void this.subscribe(this.subscriber, FIRST_PAUSE_MS);
  }

  close(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.subscriber?.disconnect();
    this.subscriber = null;
    return Promise.resolve();
  }

  /** A server may refuse it temporarily: an ACL user without the channel, or a loading replica. Never rejects. */
  private async subscribe(subscriber: Redis, pauseMs: number): Promise<void> {
    try {
      await subscriber.subscribe(SIGNAL_CHANNEL);
    } catch (error) {
      if (this.subscriber !== subscriber) return;
      this.logger.warn(
        { event: 'signals.connection_lost', err: error, retryMs: pauseMs },
        'Redis subscription lost; falling back to polling',
      );
      const nextPauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      this.timer = setTimeout(() => void this.subscribe(subscriber, nextPauseMs), pauseMs);
    }
  }
}
