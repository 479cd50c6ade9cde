import { ChildLink } from '../child-link.js';
import type { LoadPlan, LoadReport } from './plan.js';

/** The generator in a process of its own. */
export class LoadGenerator {
  private readonly link = ChildLink.start<LoadPlan, LoadReport>(
    new URL('./load-generator.child.js', import.meta.url),
  );

  /** @throws Error when an answer has another status than `expected`: a refusal is no throughput */
  async run(plan: LoadPlan, expected: number): Promise<LoadReport> {
    const report = await this.link.ask(plan);
    const others = Object.keys(report.statuses).filter((status) => Number(status) !== expected);
    if (others.length > 0) throw new Error(`${plan.path}: answers ${JSON.stringify(report.statuses)}`);
    return report;
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}
