import type { Redis } from 'ioredis';
import { SIGNAL_CHANNEL, type SignalChannel } from './signal-channel.js';

/** PUBLISH and SUBSCRIBE (D51); ioredis connects and subscribes again by itself. */
export class RedisChannel implements SignalChannel {
  private subscriber: Redis | null = null;

  constructor(private readonly redis: Redis) {}

  async send(text: string): Promise<void> {
    await this.redis.publish(SIGNAL_CHANNEL, text);
  }

  listen(heard: (text: string) => void): void {
    // A connection that subscribes takes no other command.
    this.subscriber = this.redis.duplicate();
    this.subscriber.on('error', () => undefined);
    this.subscriber.on('message', (_channel, text) => heard(text));
    this.subscriber.subscribe(SIGNAL_CHANNEL).catch(() => undefined);
  }

  close(): Promise<void> {
    this.subscriber?.disconnect();
    return Promise.resolve();
  }
}
