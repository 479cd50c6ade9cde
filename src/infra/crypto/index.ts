/**
 * Cryptography with the keys of `SECRETS_KEYS`: stored secrets (`SecretBox`, D37) and list cursors (`CursorCodec`,
 * D11). The first key encrypts and signs, every key of the ring decrypts and verifies, so that keys can be rotated.
 * Owns no table.
 */
export { assertSecretsOpen, describeKeyFault, findKeyFaults } from './assert-secrets-open.js';
export { CryptoModule } from './crypto.module.js';
export { CursorCodec } from './cursor-codec.js';
export { SecretBox } from './secret-box.js';
export { type ResealedColumn, SecretResealer } from './secret-resealer.js';
