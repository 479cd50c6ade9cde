import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';

const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts stored secrets with AES-256-GCM and a key ring (D37): `v1.<key id>.<base64url of iv, tag, ciphertext>`.
 * `owner` (the row's id) is authenticated, so that a ciphertext copied to another row cannot be decrypted.
 */
@Injectable()
export class SecretBox {
  /** Create the KeyObject once; raw bytes make Node create one per call. */
  private readonly ring: ReadonlyMap<string, KeyObject>;
  private readonly current: { readonly id: string; readonly key: KeyObject };

  constructor(@Inject(APP_CONFIG) config: Pick<AppConfig, 'secretKeys'>) {
    const keys = config.secretKeys.map(({ id, key }) => ({ id, key: createSecretKey(key) }));
    const [current] = keys;
    if (!current) throw new Error('SECRETS_KEYS is empty');
    this.current = current;
    this.ring = new Map(keys.map(({ id, key }) => [id, key]));
  }

  /** Prefix of every text encrypted with the newest key. */
  get newestPrefix(): string {
    return `v1.${this.current.id}.`;
  }

  seal(plaintext: string, owner: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.current.key, iv).setAAD(Buffer.from(owner));
    const ciphertext = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
    const sealed = Buffer.concat([iv, cipher.getAuthTag(), ciphertext]);
    return `${this.newestPrefix}${sealed.toString('base64url')}`;
  }

  /**
   * @throws Error when the key has left the ring, or the text or its owner was altered; the message contains neither
   */
  open(sealed: string, owner: string): string {
    const [version, keyId, payload] = sealed.split('.');
    const key = keyId === undefined ? undefined : this.ring.get(keyId);
    if (version !== 'v1' || payload === undefined) throw new Error('sealed secret has an unknown form');
    if (!key) throw new Error('sealed secret names a key that is not in SECRETS_KEYS');
    const bytes = Buffer.from(payload, 'base64url');
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    })
      .setAAD(Buffer.from(owner))
      .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
  }
}
