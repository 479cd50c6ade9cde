import { ChildLink } from '../child-link.js';

export interface CallerSettings {
  readonly apiUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly partners: readonly { readonly partnerId: string; readonly key: string }[];
}

export type CallerQuestion =
  | ({ readonly do: 'open' } & CallerSettings)
  /** As many as `connections` callers manage, one call after the other. */
  | { readonly do: 'press'; readonly connections: number; readonly durationMs: number }
  /** At their times, whatever became of those before. */
  | { readonly do: 'pace'; readonly perSecond: number; readonly durationMs: number };

export interface CallReport {
  readonly calls: number;
  readonly seconds: number;
  readonly p95Ms: number;
  /** Of what was not answered as it should be: a status, or the code of a connection's error. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Partners that order, read and poll, and now and then the portal, in a process of their own. */
export class Caller {
  private readonly link = ChildLink.start<CallerQuestion, CallReport>(
    new URL('./caller.child.js', import.meta.url),
  );

  static async start(settings: CallerSettings): Promise<Caller> {
    const caller = new Caller();
    await caller.link.ask({ do: 'open', ...settings });
    return caller;
  }

  press(connections: number, durationMs: number): Promise<CallReport> {
    return this.link.ask({ do: 'press', connections, durationMs });
  }

  pace(perSecond: number, durationMs: number): Promise<CallReport> {
    return this.link.ask({ do: 'pace', perSecond, durationMs });
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}
