import type { SecretBox } from '../../infra/crypto/index.js';

/** Endpoints whose secrets are kept; beyond it all are opened anew. */
const MAX_KEPT = 2_000;

/**
 * Signing secrets of the endpoints that are being sent to, opened once: decrypting is a third of the CPU of an
 * attempt. A rotation seals another text, so what is kept is never wrong.
 */
export class OpenedSecrets {
  private readonly kept = new Map<string, string>();

  constructor(private readonly box: Pick<SecretBox, 'open'>) {}

  /** @throws Error as `SecretBox.open` does */
  open(sealed: string, endpointId: string): string {
    const key = `${endpointId} ${sealed}`;
    const known = this.kept.get(key);
    if (known !== undefined) return known;
    const opened = this.box.open(sealed, endpointId);
    if (this.kept.size >= MAX_KEPT) this.kept.clear();
    this.kept.set(key, opened);
    return opened;
  }
}
