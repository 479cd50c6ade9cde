import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { EsimProvider, Wholesaler } from './esim-provider.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';

/** The upstreams of this process: the built-in simulator for Sandbox, and the wholesalers that are connected. */
@Injectable()
export class ProviderRegistry {
  private readonly live = new Map<string, EsimProvider>();

  constructor(private readonly sandbox: SandboxProvider) {}

  /** Connects a live upstream under its name; once per name, at boot. */
  register(provider: EsimProvider): void {
    if (this.knows(provider.name)) throw new Error(`a provider called ${provider.name} is already connected`);
    this.live.set(provider.name, provider);
  }

  /**
   * The provider that something new goes to: the simulator in Sandbox, in Live the one called `name`.
   * @throws AppError `service_unavailable` when it is not connected
   */
  forMode(mode: Mode, name: string): EsimProvider {
    const provider = mode === 'sandbox' ? this.sandbox : this.live.get(name);
    if (!provider) {
      throw new AppError('service_unavailable', {
        detail: 'Live provisioning of this package is not available now.',
      });
    }
    return provider;
  }

  /** The provider that an order was given to; null when it is not connected to this process any more. */
  findByName(name: string): EsimProvider | null {
    return name === this.sandbox.name ? this.sandbox : (this.live.get(name) ?? null);
  }

  /** As `findByName`. @throws Error when it is not connected */
  getByName(name: string): EsimProvider {
    const provider = this.findByName(name);
    if (!provider) throw new Error(`no provider is called ${name}`);
    return provider;
  }

  /** What is connected for Live, by name. */
  get names(): readonly string[] {
    return [...this.live.keys()];
  }

  /** The wholesalers that are connected. */
  get wholesalers(): readonly Wholesaler[] {
    return [...this.live.values()].filter(isWholesaler);
  }

  /** @throws Error when no wholesaler of that name is connected */
  getWholesaler(name: string): Wholesaler {
    const found = this.wholesalers.find((wholesaler) => wholesaler.name === name);
    if (!found) throw new Error(`no wholesaler is called ${name}`);
    return found;
  }

  private knows(name: string): boolean {
    return name === this.sandbox.name || this.live.has(name);
  }
}

function isWholesaler(provider: EsimProvider): provider is Wholesaler {
  return 'listPackages' in provider;
}
