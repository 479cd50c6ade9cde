import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';

type Errors = readonly { readonly message?: string; readonly stack?: string }[];

/**
 * Prints the one closing line that any reader of the log understands: `12 passed, 0 failed`; and of each failure its reason
 * at once, as a run that is cut off has no end at which vitest would tell it.
 */
export default class ClosingLineReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    if (state === 'failed') printReasons(`${test.module.relativeModuleId} > ${test.fullName}`, errors);
  }

  onTestSuiteResult(suite: TestSuite): void {
    printReasons(`${suite.module.relativeModuleId} > ${suite.fullName}`, suite.errors());
  }

  onTestModuleEnd(module: TestModule): void {
    printReasons(module.relativeModuleId, module.errors());
  }

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

function printReasons(what: string, errors: Errors): void {
  for (const { message, stack } of errors) {
    const ours = stack?.split('\n').filter((line) => /\/test\//.test(line)) ?? [];
    console.log([`FAILED ${what}`, message ?? 'no reason given', ...ours].join('\n  '));
  }
}
