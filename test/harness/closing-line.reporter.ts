import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';

type Errors = readonly { readonly message?: string; readonly stack?: string }[];

/**
 * Prints a closing line such as `12 passed, 0 failed`. Prints the reason of each failure at once, because an aborted
 * run never reaches vitest's summary.
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
      // A file that fails to load, or a failing hook, has no failed test.
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
