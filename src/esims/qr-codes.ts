import { createHash } from 'node:crypto';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { TenantScope } from '../common/tenant-scope.js';
import { CallerSlots } from '../infra/http/index.js';
import type { QrCode } from './draw-qr-code.thread.js';
import { QrCodeThread } from './qr-code-thread.js';

/** Of all partners; the codes used longest ago make room. */
const MAX_BYTES = 16 * 1024 * 1024;
/** A code is shown and scanned within minutes; what it says is a secret, so it is not kept for longer (D25). */
const KEPT_MS = 600_000;
/** One is drawn while the next is on its way; partners take turns. */
const SLOTS = { what: 'QR codes', perCaller: 1, most: 2, waitMs: 30_000 } as const;

/** Draws activation codes as QR codes: what a phone's camera reads to install the profile. Off the event loop (D43). */
@Injectable()
export class QrCodes implements OnApplicationShutdown {
  private readonly thread = new QrCodeThread();
  private readonly slots = new CallerSlots(SLOTS);
  private readonly drawing = new Map<string, Promise<QrCode>>();
  /** By a hash of the activation code. */
  private readonly kept = new LRUCache<string, QrCode>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ svg, pngBase64 }) => svg.length + pngBase64.length,
    ttl: KEPT_MS,
  });

  /** @throws AppError `rate_limited`, `service_unavailable` when too much is to be drawn already */
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

  /** After the server has answered its last calls. */
  async onApplicationShutdown(): Promise<void> {
    await this.thread.stop();
  }
}
