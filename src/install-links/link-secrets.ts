import { createHash, randomBytes, randomInt } from 'node:crypto';

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const CODE_DIGITS = 8;

/** 256 random bits, the credential in a link's path (D63). */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Whether `text` has the form of a token. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** The stored form of a token. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Eight random digits, which a traveler can read out and type on a phone. */
export function newAccessCode(): string {
  return String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, '0');
}

/**
 * The stored form of an access code. The token is part of it, and only its hash is stored: a copy of the database is
 * therefore not enough to find the code by trying all of them.
 */
export function hashAccessCode(token: string, code: string): Buffer {
  return createHash('sha256').update(`${token}\0${code}`).digest();
}
