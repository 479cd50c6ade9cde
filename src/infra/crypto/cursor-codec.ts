import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { canonicalJson } from '../../common/canonical-json.js';
import { AppError } from '../../common/errors/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';

const TAG_BYTES = 16;
const MAX_LENGTH = 1_024;

/**
 * Opaque list cursors: a position bound by an HMAC to the list, its filters and its owner (D11). Every key of the ring
 * verifies, so that a rotation of `SECRETS_KEYS` does not break a partner's list halfway.
 */
@Injectable()
export class CursorCodec {
  private readonly keys: readonly Buffer[];

  constructor(@Inject(APP_CONFIG) config: Pick<AppConfig, 'secretKeys'>) {
    this.keys = config.secretKeys.map(({ key }) =>
      Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), 'list-cursor', 32)),
    );
  }

  encode(position: readonly (string | number)[], scope: unknown): string {
    const payload = Buffer.from(JSON.stringify(position));
    return Buffer.concat([this.tag(this.keys[0]!, payload, scope), payload]).toString('base64url');
  }

  /** @throws AppError `invalid_cursor` when it was altered or belongs to another list, filter, partner or mode */
  decode(cursor: string, scope: unknown): readonly (string | number)[] {
    const bytes = Buffer.from(cursor.slice(0, MAX_LENGTH), 'base64url');
    const tag = bytes.subarray(0, TAG_BYTES);
    const payload = bytes.subarray(TAG_BYTES);
    const known =
      // base64url decoding drops unknown characters: accept only the spelling that we issued.
      bytes.toString('base64url') === cursor &&
      tag.length === TAG_BYTES &&
      this.keys.some((key) => timingSafeEqual(tag, this.tag(key, payload, scope)));
    if (!known) throw new AppError('invalid_cursor');
    return JSON.parse(payload.toString()) as (string | number)[];
  }

  private tag(key: Buffer, payload: Buffer, scope: unknown): Buffer {
    const hmac = createHmac('sha256', key).update(canonicalJson(scope)).update('\0').update(payload);
    return hmac.digest().subarray(0, TAG_BYTES);
  }
}
