import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { EsimProvider } from './esim-provider.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';

/** Which upstream serves what. Sandbox has the built-in simulator; a live wholesaler is not connected yet. */
@Injectable()
export class ProviderRegistry {
  constructor(private readonly sandbox: SandboxProvider) {}

  /** The provider that new orders of `mode` go to. @throws AppError `service_unavailable` when there is none. */
  forMode(mode: Mode): EsimProvider {
    if (mode === 'sandbox') return this.sandbox;
    throw new AppError('service_unavailable', { detail: 'Live provisioning is not configured.' });
  }

  /** The provider that an order was given to. @throws Error when this release no longer knows it. */
  getByName(name: string): EsimProvider {
    if (name === this.sandbox.name) return this.sandbox;
    throw new Error(`no provider is called ${name}`);
  }
}
