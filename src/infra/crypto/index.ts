export { CryptoModule } from './crypto.module.js';
export { CursorCodec } from './cursor-codec.js';
export { SecretBox } from './secret-box.js';
