import { Inject, Injectable } from '@nestjs/common';
import { Gauge, type Registry } from 'prom-client';
import { KeptReading } from '../../infra/kept-reading.js';
import { METRICS } from '../../infra/metrics.js';
import { type ProviderHealth, ProviderHealthRepository } from '../../providers/index.js';

const MICROS = 1_000_000;

/** Metrics of the providers from the database: every worker shows the same. */
@Injectable()
export class ProviderGauges {
  constructor(@Inject(METRICS) registry: Registry, health: ProviderHealthRepository) {
    const known = new KeptReading('provider_*', () => health.list());
    const show = (
      name: string,
      help: string,
      valueOf: (provider: ProviderHealth) => number | null,
      currencyOf?: (provider: ProviderHealth) => string | undefined,
    ): void => {
      new Gauge<string>({
        name,
        help,
        labelNames: currencyOf ? ['provider', 'currency'] : ['provider'],
        registers: [registry],
        async collect() {
          this.reset();
          for (const each of (await known.current()) ?? []) {
            const value = valueOf(each);
            const currency = currencyOf?.(each);
            const labels = currency === undefined ? {} : { currency };
            if (value !== null) this.set({ provider: each.provider, ...labels }, value);
          }
        },
      });
    };
    show('provider_failing', '1 if the last call of any process to the provider failed.', ({ state }) =>
      state === 'failing' ? 1 : 0,
    );
    show(
      'provider_balance',
      'Last known balance of our account at the provider, in its currency.',
      ({ balance }) => (balance === null ? null : balance.micros / MICROS),
      ({ balance }) => balance?.currency,
    );
    show(
      'provider_catalog_synced_timestamp_seconds',
      "Time of the last complete read of the provider's catalog.",
      ({ lastSyncAt }) => (lastSyncAt === null ? null : lastSyncAt.getTime() / 1_000),
    );
  }
}
