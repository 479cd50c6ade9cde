import { ChildLink } from '../child-link.js';
import type { LoadReport } from '../load/plan.js';

/** A value that every call makes anew; equal slots are equal values. */
export interface FreshValue {
  readonly slot: number;
  readonly kind: 'ulid' | 'uuid';
}

/** A parameter in parts: fixed text and fresh values; null is NULL. */
export type ParameterTemplate = readonly (string | FreshValue)[] | null;

export interface RawStatement {
  /** Of a prepared statement, else null. */
  readonly name: string | null;
  readonly text: string;
  readonly parameters: readonly ParameterTemplate[];
}

export interface RawPlan {
  readonly databaseUrl: string;
  readonly statements: readonly RawStatement[];
  readonly poolMax: number;
  readonly concurrency: number;
  readonly warmupMs: number;
  readonly durationMs: number;
}

/** Repeats a captured transaction with nothing but `pg`, in a process of its own. */
export class RawTransactions {
  private readonly link = ChildLink.start<RawPlan, LoadReport>(
    new URL('./raw-transactions.child.js', import.meta.url),
  );

  get pid(): number {
    return this.link.pid;
  }

  run(plan: RawPlan): Promise<LoadReport> {
    return this.link.ask(plan);
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}
