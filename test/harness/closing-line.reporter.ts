import type { Reporter, TestModule } from 'vitest/node';

/** Prints the one closing line that any reader of the log understands: `12 passed, 0 failed`. */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      const before = counts.failed;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed' || state === 'failed' || state === 'skipped') counts[state]++;
      }
      // A file that does not load, or a hook that fails, has no failed test of its own.
      if (module.state() === 'failed' && counts.failed === before) counts.failed++;
    }
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
    console.log(`\n${counts.passed} passed, ${counts.failed} failed${skipped}`);
  }
}
