import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { EsimProvider } from './esim-provider.js';
import type { LiveProvider } from './live-provider.js';
import { SandboxProvider } from './sandbox/sandbox-provider.js';

/** The providers of this process: the built-in simulator for Sandbox, and the connected live providers. */
@Injectable()
export class ProviderRegistry {
  private readonly live = new Map<string, EsimProvider>();
  private readonly sold = new Set<string>();

  constructor(private readonly sandbox: SandboxProvider) {}

  /** Connects a live provider under its name; once per name, at boot. */
  register(provider: EsimProvider): void {
    if (this.knows(provider.name)) throw new Error(`a provider called ${provider.name} is already connected`);
    this.live.set(provider.name, provider);
    this.sell(provider.name);
  }

  /**
   * Permits the sale of a live provider's packages. A worker is connected to the provider; this process need not be.
   */
  sell(name: string): void {
    this.sold.add(name);
  }

  /**
   * The provider for a new purchase: the simulator in Sandbox, the one called `name` in Live.
   * @throws AppError `service_unavailable` when no worker is connected to it
   */
  nameForNew(mode: Mode, name: string): string {
    if (mode === 'sandbox') return this.sandbox.name;
    if (this.sold.has(name)) return name;
    throw new AppError('service_unavailable', {
      detail: 'This package is temporarily unavailable in Live. Try again later, or choose another package.',
    });
  }

  /** The provider of an existing order; null when this process is no longer connected to it. */
  findByName(name: string): EsimProvider | null {
    return name === this.sandbox.name ? this.sandbox : (this.live.get(name) ?? null);
  }

  /** Like `findByName`. @throws Error when it is not connected */
  getByName(name: string): EsimProvider {
    const provider = this.findByName(name);
    if (!provider) throw new Error(`no provider is called ${name}`);
    return provider;
  }

  /** Names of the connected live providers. */
  get names(): readonly string[] {
    return [...this.live.keys()];
  }

  get liveProviders(): readonly LiveProvider[] {
    return [...this.live.values()].filter(isLiveProvider);
  }

  /** @throws Error when no provider of that name is connected */
  getLiveProvider(name: string): LiveProvider {
    const found = this.liveProviders.find((liveProvider) => liveProvider.name === name);
    if (!found) throw new Error(`no live provider is called ${name}`);
    return found;
  }

  private knows(name: string): boolean {
    return name === this.sandbox.name || this.live.has(name);
  }
}

function isLiveProvider(provider: EsimProvider): provider is LiveProvider {
  return 'listPackages' in provider;
}
