import { createHash } from 'node:crypto';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { TenantScope } from '../common/tenant-scope.js';
import { CallerSlots } from '../infra/http/index.js';
import type { QrCode } from './draw-qr-code.thread.js';
import { QrCodeThread } from './qr-code-thread.js';

/** Limit for all partners; least recently used codes are evicted. */
const MAX_BYTES = 16 * 1024 * 1024;
/** A code is shown and scanned within minutes. It contains a secret, so it is not cached for longer (D25). */
const KEPT_MS = 600_000;
/** While one code is drawn, the next one is already sent to the thread; partners take turns. */
const SLOTS = { what: 'QR codes', perCaller: 1, most: 2, waitMs: 30_000 } as const;

/** Draws activation codes as QR codes for a phone's camera, off the event loop (D43). */
@Injectable()
export class QrCodes implements OnApplicationShutdown {
  private readonly thread = new QrCodeThread();
  private readonly slots = new CallerSlots(SLOTS);
  private readonly drawing = new Map<string, Promise<QrCode>>();
  /** Codes by a hash of the activation code. */
  private readonly kept = new LRUCache<string, QrCode>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ svg, pngBase64 }) => svg.length + pngBase64.length,
    ttl: KEPT_MS,
  });

  /** @throws AppError `rate_limited`, `service_unavailable` when too many codes are queued */
  async draw({ partnerId, mode }: TenantScope, activationCode: string): Promise<QrCode> {
    const key = createHash('sha256').update(activationCode).digest('base64url');
    const kept = this.kept.get(key) ?? this.drawing.get(key);
    if (kept) return kept;
    const drawing = this.slots
      .run(`${partnerId} ${mode}`, () => this.thread.draw(activationCode))
      .finally(() => this.drawing.delete(key));
    this.drawing.set(key, drawing);
    const drawn = await drawing;
    this.kept.set(key, drawn);
    return drawn;
  }

  /** Runs after the server has sent its last responses. */
  async onApplicationShutdown(): Promise<void> {
    await this.thread.stop();
  }
}
