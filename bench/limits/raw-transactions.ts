import { ChildLink } from '../child-link.js';
import type { LoadReport } from '../load/plan.js';

/** A value that every call makes anew; equal slots are equal values. */
export interface FreshValue {
  readonly slot: number;
  readonly kind: 'ulid' | 'uuid';
}

/** Whose calls are repeated; ids with their prefixes. */
export interface Owner {
  readonly partnerId: string;
  readonly keyId: string;
}

/** An id, without its prefix, of the owner whose turn it is. */
export interface OwnerValue {
  readonly owner: keyof Owner;
}

/** A parameter in parts: fixed text and what each call fills in; null is NULL. */
export type ParameterTemplate = readonly (string | FreshValue | OwnerValue)[] | null;

export interface RawStatement {
  /** Of a prepared statement, else null. */
  readonly name: string | null;
  readonly text: string;
  readonly parameters: readonly ParameterTemplate[];
}

export interface RawPlan {
  readonly databaseUrl: string;
  readonly statements: readonly RawStatement[];
  /** Take turns, as the keys of the load generator do. */
  readonly owners: readonly Owner[];
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

/** The part of an id after its prefix. */
export function withoutPrefix(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}
