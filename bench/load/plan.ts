/** What the generator is to do. */
export interface LoadPlan {
  /** `http://127.0.0.1:3000` */
  readonly baseUrl: string;
  readonly path: string;
  /** Bearer tokens, taken in turn. */
  readonly keys: readonly string[];
  /** JSON; with it the calls are POSTs, each with a fresh Idempotency-Key. */
  readonly body?: string;
  readonly connections: number;
  /** Calls before the measurement begins. */
  readonly warmupMs: number;
  readonly durationMs: number;
}

export interface LoadReport {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** Answers of the measurement by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Answers, those of the warm-up included: what the CPU time of all the processes was spent on. */
  readonly answeredInAll: number;
  /** Cores that the generator itself took. */
  readonly generatorCpu: number;
}
