import { Logger } from '@nestjs/common';
import { Gauge, type Registry } from 'prom-client';
import { endsWithin } from '../common/time-limit.js';

/** A scraper that reads more often gets the previous value. */
const KEPT_MS = 10_000;
/** Readings that may be stale take at most this share of the time. Slow ones are therefore repeated less often. */
const LARGEST_SHARE = 0.05;
/** Maximum wait of a scraper for such a reading: a scrape stays fast however large the tables are. */
const STALE_WAIT_MS = 25;

/** A value of the whole database that `/metrics` shows. It is read on request, but not too often. */
export class KeptReading<T> {
  private value: T | null = null;
  private readAtMs: number | null = null;
  private nextAtMs = -Infinity;
  private reading: Promise<void> | null = null;
  private readonly log = new Logger(KeptReading.name);

  /**
   * @param name of the metric, for the log line of a failed reading
   * @param shownWhileStale returns the last value while a new one is read, or if that fails. Without it, callers wait
   * for the reading, and get null if it fails
   */
  constructor(
    private readonly name: string,
    private readonly read: () => Promise<T>,
    private readonly options: { readonly shownWhileStale?: true } = {},
  ) {}

  /** Null when nothing is known. */
  async current(): Promise<T | null> {
    if (performance.now() >= this.nextAtMs) this.reading ??= this.refresh();
    if (this.reading)
      await (this.options.shownWhileStale ? endsWithin(this.reading, STALE_WAIT_MS) : this.reading);
    return this.value;
  }

  /** Milliseconds since the value was read; null when none was. */
  ageMs(): number | null {
    return this.readAtMs === null ? null : performance.now() - this.readAtMs;
  }

  private async refresh(): Promise<void> {
    const startedAtMs = performance.now();
    try {
      this.value = await this.read();
      this.readAtMs = performance.now();
    } catch (error) {
      this.log.warn(`${this.name} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
      if (!this.options.shownWhileStale) this.value = null;
    } finally {
      const tookMs = performance.now() - startedAtMs;
      const pauseMs = this.options.shownWhileStale ? Math.max(KEPT_MS, tookMs / LARGEST_SHARE) : KEPT_MS;
      this.nextAtMs = performance.now() + pauseMs;
      this.reading = null;
    }
  }
}

/**
 * Shows the result of `read` as a separate reading. If it fails or exceeds its own time limit, only this gauge is
 * missing in `/metrics`. A null result shows nothing.
 */
export function showReading(
  registry: Registry,
  { name, help }: { readonly name: string; readonly help: string },
  read: () => Promise<number | null>,
): void {
  const kept = new KeptReading(name, read);
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const value = await kept.current();
      // `reset` would show a zero that was never read, because this gauge has no labels.
      if (value === null) this.remove();
      else this.set(value);
    },
  });
}

/** Like `showReading`, for values by one label. Label values must come from the code, not from callers. */
export function showReadings<Label extends string>(
  registry: Registry,
  gauge: { readonly name: string; readonly help: string; readonly label: Label },
  read: () => Promise<ReadonlyMap<string, number>>,
): void {
  const { name, help, label } = gauge;
  const kept = new KeptReading(name, read);
  new Gauge<string>({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    async collect() {
      this.reset();
      for (const [key, value] of (await kept.current()) ?? []) this.set({ [label]: key }, value);
    },
  });
}
