import { ChildLink } from '../child-link.js';

export interface HealthySettings {
  readonly apiUrl: string;
  readonly key: string;
}

export type HealthyQuestion =
  ({ readonly do: 'open' } & HealthySettings) | { readonly do: 'measure'; readonly durationMs: number };

export const HEALTHY_CALLS = ['GET /v1/me', 'POST /v1/orders', 'GET /v1/orders', 'order to webhook'] as const;
export type HealthyCall = (typeof HEALTHY_CALLS)[number];

export interface HealthyReport {
  /** Milliseconds, ascending; of what was answered as it should be. */
  readonly latencies: Record<HealthyCall, readonly number[]>;
  /** Refused, failed, or a webhook that did not come within the patience. */
  readonly errors: Readonly<Record<string, number>>;
}

/** A partner that behaves: a few calls a second, and an endpoint that answers. In a process of its own. */
export class Healthy {
  private readonly link = ChildLink.start<HealthyQuestion, HealthyReport & { hookUrl?: string }>(
    new URL('./healthy.child.js', import.meta.url),
  );

  /** Answers the address of its endpoint. */
  async open(settings: HealthySettings): Promise<string> {
    return (await this.link.ask({ do: 'open', ...settings })).hookUrl!;
  }

  measure(durationMs: number): Promise<HealthyReport> {
    return this.link.ask({ do: 'measure', durationMs });
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}
