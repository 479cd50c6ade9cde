import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { counterIn, gaugeIn, histogramIn, LATENCY_SECONDS } from '../../infra/metrics.js';
import type { CircuitState } from './circuit-breaker.js';
import type { CallPurpose } from './provider-rate-limiter.js';

/** How a call ended. In the last two cases it was never sent: the circuit was open, or no slot was free in time. */
export type CallOutcome =
  | 'answered'
  | 'refused'
  | 'server_error'
  | 'timeout'
  | 'unreadable'
  | 'connection'
  | 'circuit_open'
  | 'not_paced';

const CIRCUIT_LEVELS: Readonly<Record<CircuitState, number>> = { closed: 0, half_open: 1, open: 2 };

/** Metrics of provider calls. Labels are names from the code only, never response content. */
export class ProviderMetrics {
  private readonly calls: Counter<'provider' | 'purpose' | 'outcome'>;
  private readonly latencies: Histogram<'provider' | 'purpose'>;
  private readonly paceWaits: Histogram<'provider' | 'purpose'>;
  private readonly circuits: Gauge<'provider'>;

  constructor(registry: Registry) {
    this.calls = counterIn(registry, {
      name: 'provider_calls_total',
      help: 'Calls to providers by purpose and outcome. Calls with circuit_open or not_paced were not sent.',
      labelNames: ['provider', 'purpose', 'outcome'],
    });
    this.latencies = histogramIn(registry, {
      name: 'provider_call_duration_seconds',
      help: 'Duration of calls sent to providers, without the wait for a rate-limit slot.',
      labelNames: ['provider', 'purpose'],
      buckets: LATENCY_SECONDS,
    });
    this.paceWaits = histogramIn(registry, {
      name: 'provider_pace_wait_seconds',
      help: 'How long calls to providers waited for a rate-limit slot, including calls that got none.',
      labelNames: ['provider', 'purpose'],
      buckets: LATENCY_SECONDS,
    });
    this.circuits = gaugeIn(registry, {
      name: 'provider_circuit_state',
      help: "State of this process's circuit breaker at the last call to the provider: 0 closed, 1 half open, 2 open.",
      labelNames: ['provider'],
    });
  }

  /** @param tookMs null for a call that was never sent */
  called(provider: string, purpose: CallPurpose, outcome: CallOutcome, tookMs: number | null): void {
    this.calls.inc({ provider, purpose, outcome });
    if (tookMs !== null) this.latencies.observe({ provider, purpose }, tookMs / 1_000);
  }

  paced(provider: string, purpose: CallPurpose, waitedMs: number): void {
    this.paceWaits.observe({ provider, purpose }, waitedMs / 1_000);
  }

  circuit(provider: string, state: CircuitState): void {
    this.circuits.set({ provider }, CIRCUIT_LEVELS[state]);
  }
}

/** Derived from the client's short code and the response status; both are null only for a call without a response. */
export function outcomeOf(status: number | null, code: string | null): CallOutcome {
  if (code === null) return status !== null && status >= 400 ? 'refused' : 'answered';
  if (code === 'timeout') return 'timeout';
  if (code === 'too_large' || code === 'not_json') return 'unreadable';
  return code.startsWith('http_') ? 'server_error' : 'connection';
}
