import { createHmac, randomBytes } from 'node:crypto';
import { configFolder, type Environment, fileIn } from '../credentials/paths.js';
import { readPrivateFile, writePrivateFile } from '../credentials/private-file.js';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const LENGTH = 40;
/** Skip bytes from here on, because they would make some letters more likely. */
const UNBIASED_BELOW = 256 - (256 % ALPHABET.length);

export const signingSecretFile = (environment: Environment): string =>
  fileIn(configFolder(environment), 'listen-signing-secret');

/**
 * The secret that `listen` signs with on this machine. It is created once and then reused.
 * @returns `made`: whether it was created by this call
 */
export function localSigningSecret(environment: Environment): {
  readonly secret: string;
  readonly made: boolean;
} {
  const file = signingSecretFile(environment);
  const kept = readPrivateFile(file)?.trim();
  if (kept) return { secret: kept, made: false };
  const secret = `whsec_${randomLetters()}`;
  writePrivateFile(file, `${secret}\n`);
  return { secret, made: true };
}

function randomLetters(): string {
  let letters = '';
  while (letters.length < LENGTH) {
    for (const byte of randomBytes(LENGTH)) {
      if (byte < UNBIASED_BELOW && letters.length < LENGTH) letters += ALPHABET[byte % ALPHABET.length];
    }
  }
  return letters;
}

/** @returns the value of `X-Service-Signature`, computed as the service does: HMAC-SHA256 over `<t>.<body>` */
export function signatureHeader(secret: string, body: string, nowMs = Date.now()): string {
  const timestamp = Math.floor(nowMs / 1_000);
  const hex = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex');
  return `t=${timestamp},v1=${hex}`;
}
