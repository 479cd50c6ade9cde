import { Client } from 'pg';

/** One statement text that a process sent to PostgreSQL, and its count. */
export interface CountedStatement {
  readonly text: string;
  readonly count: number;
}

interface Connected {
  readonly connectionParameters: { readonly application_name?: string };
}

/**
 * Counts the statements that this process sends over connections with one application name, including BEGIN and COMMIT.
 * It counts at the client, so neither a cache nor a pool of the service can hide any.
 */
export class StatementCounter {
  private readonly counts = new Map<string, number>();
  private readonly original = Object.getOwnPropertyDescriptor(Client.prototype, 'query')!;

  /** @param applicationName e.g. `partner-esim-worker` */
  constructor(applicationName: string) {
    const { counts } = this;
    const send = this.original.value as (...query: unknown[]) => unknown;
    function counted(this: Client, ...query: unknown[]): unknown {
      const { connectionParameters } = this as unknown as Connected;
      if (connectionParameters.application_name === applicationName) {
        const text = textOf(query[0]);
        counts.set(text, (counts.get(text) ?? 0) + 1);
      }
      return send.apply(this, query);
    }
    Object.defineProperty(Client.prototype, 'query', { ...this.original, value: counted });
  }

  /** Most frequent first. */
  get statements(): readonly CountedStatement[] {
    return [...this.counts].map(([text, count]) => ({ text, count })).sort((a, b) => b.count - a.count);
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  reset(): void {
    this.counts.clear();
  }

  stop(): void {
    Object.defineProperty(Client.prototype, 'query', this.original);
  }
}

function textOf(query: unknown): string {
  const text = typeof query === 'string' ? query : ((query as { text?: string } | null)?.text ?? '');
  return text.replace(/\s+/g, ' ').trim().slice(0, 90);
}
