import { Global, Module } from '@nestjs/common';
import { CursorCodec } from './cursor-codec.js';
import { SecretBox } from './secret-box.js';

@Global()
@Module({ providers: [SecretBox, CursorCodec], exports: [SecretBox, CursorCodec] })
export class CryptoModule {}
