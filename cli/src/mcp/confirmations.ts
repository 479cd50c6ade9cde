import { randomUUID, timingSafeEqual } from 'node:crypto';
import { CliError, EXIT } from '../exit-codes.js';
import type { Money, PartnerApi } from '../partner-api.js';

/** A person needs time to read the preview. After that, prices and balance are read again. */
const VALID_MS = 10 * 60_000;

type Arguments = Readonly<Record<string, unknown>>;

/** Arguments, price and key of a previewed purchase. */
export interface Confirmed {
  readonly idempotencyKey: string;
  /** The previewed price of one unit, which the purchase must not exceed. */
  readonly unitPrice: Money;
}

interface Content extends Confirmed {
  readonly expiresAtMs: number;
}

/**
 * Tokens that confirm a previewed write. A token is bound to the tool, its arguments, the price and the API key, and
 * contains the idempotency key of the purchase. So it buys at most once, also after a restart, and needs no memory.
 */
export class Confirmations {
  constructor(
    private readonly api: Pick<PartnerApi, 'mac'>,
    private readonly now: () => number = Date.now,
  ) {}

  /** Issues a token for one purchase. */
  issue(tool: string, args: Arguments, unitPrice: Money): { confirm_token: string; expires_at: string } {
    const expiresAtMs = this.now() + VALID_MS;
    const content: Content = { idempotencyKey: `mcp-${randomUUID()}`, unitPrice, expiresAtMs };
    const encoded = Buffer.from(JSON.stringify(content)).toString('base64url');
    return {
      confirm_token: `${encoded}.${this.mac(tool, args, encoded)}`,
      expires_at: new Date(expiresAtMs).toISOString(),
    };
  }

  /** @throws CliError when the token is not for these arguments, or has expired */
  verify(token: string, tool: string, args: Arguments): Confirmed {
    const [encoded = '', given = ''] = token.split('.');
    const [expected, actual] = [this.mac(tool, args, encoded), given].map((mac) => Buffer.from(mac));
    if (expected!.length !== actual!.length || !timingSafeEqual(expected!, actual!))
      throw new CliError(
        EXIT.usage,
        'confirm_token does not belong to these arguments. Repeat the call without it to get a new preview.',
      );
    const { expiresAtMs, ...confirmed } = JSON.parse(Buffer.from(encoded, 'base64url').toString()) as Content;
    if (expiresAtMs <= this.now())
      throw new CliError(
        EXIT.usage,
        'confirm_token has expired. If you used it before, look for the purchase first. ' +
          'Otherwise repeat the call without it to get a new preview.',
      );
    return confirmed;
  }

  private mac(tool: string, args: Arguments, encoded: string): string {
    const given = Object.entries(args).filter(([name]) => name !== 'confirm_token');
    const sorted = given.toSorted(([one], [other]) => (one < other ? -1 : 1));
    return this.api.mac(JSON.stringify([tool, sorted, encoded]));
  }
}
