import { ChildLink } from '../child-link.js';
import type { LoadReport } from '../load/plan.js';

export interface RawPostsPlan {
  /** Called by `perUrl` callers each. */
  readonly urls: readonly string[];
  readonly perUrl: number;
  readonly secret: string;
  /** Sent again and again, signed anew each time. */
  readonly body: string;
  readonly warmupMs: number;
  readonly durationMs: number;
}

/** Signed POSTs with nothing but Node's client, in a process of its own: no database, no log. */
export class RawPosts {
  private readonly link = ChildLink.start<RawPostsPlan, LoadReport>(
    new URL('./raw-posts.child.js', import.meta.url),
  );

  get pid(): number {
    return this.link.pid;
  }

  /** @throws Error when an answer is no 200 */
  async run(plan: RawPostsPlan): Promise<LoadReport> {
    const report = await this.link.ask(plan);
    const others = Object.keys(report.statuses).filter((status) => status !== '200');
    if (others.length > 0) throw new Error(`raw posts: answers ${JSON.stringify(report.statuses)}`);
    return report;
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}
