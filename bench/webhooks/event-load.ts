import { ChildLink } from '../child-link.js';

/** Where and as whom events are recorded. */
export interface EventLoadSettings {
  readonly databaseUrl: string;
  readonly secretsKeys: string;
}

export interface EventPace {
  /** Each event goes to one of them, drawn at random. */
  readonly partnerIds: readonly string[];
  readonly perSecond: number;
  readonly durationMs: number;
}

export interface EventBulk {
  readonly partnerIds: readonly string[];
  readonly count: number;
}

export type EventLoadQuestion =
  | ({ readonly do: 'open' } & EventLoadSettings)
  | ({ readonly do: 'pace' } & EventPace)
  | ({ readonly do: 'bulk' } & EventBulk);

/** One event each; times are of the machine's clock. */
export interface PacedEvents {
  readonly numbers: readonly number[];
  /** Index into `partnerIds`. */
  readonly partners: readonly number[];
  readonly dueAtMs: readonly number[];
  /** When the caller of the transaction knew that it was committed; null when it was not. */
  readonly committedAtMs: readonly (number | null)[];
  /** Cores that recording took. */
  readonly cpu: number;
}

/** Records events as the service does, in a process of its own. */
export class EventLoad {
  private readonly link = ChildLink.start<EventLoadQuestion, PacedEvents>(
    new URL('./event-load.child.js', import.meta.url),
  );

  static async start(settings: EventLoadSettings): Promise<EventLoad> {
    const load = new EventLoad();
    await load.link.ask({ do: 'open', ...settings });
    return load;
  }

  /** Open loop: one transaction per event at its time, whatever became of those before. */
  pace(plan: EventPace): Promise<PacedEvents> {
    return this.link.ask({ do: 'pace', ...plan });
  }

  /** Many events in few transactions, the partners in turn. */
  async bulk(plan: EventBulk): Promise<void> {
    await this.link.ask({ do: 'bulk', ...plan });
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}
