import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that run for half a minute or more, most of it waiting, and small ones that would be the last to end. */
const SLOW =
  /test\/(live|live-scenarios|chaos|reconciliation|restore|redis)\/|esim-sync\/polling|e2e\/(embedded|delayed)|portal\/(access|lost)|list-plans|webhooks\/(leases|hostile-receivers|schedule|replay)\.test/;
/** So many others between two of them. */
const BETWEEN = 5;

/**
 * Slow files begin early, as the last of them would have one worker run on alone, and not at once, as they would leave the
 * cores idle. Files with a process of their own stay together: the processes that others share end between them.
 */
export class FileOrderSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isApart = ({ project }: TestSpecification): boolean => project.config.isolate;
    const shared = sorted.filter((file) => !isApart(file));
    return [...sorted.filter(isApart), ...spread(shared)];
  }
}

function spread(files: readonly TestSpecification[]): TestSpecification[] {
  const isSlow = ({ moduleId }: TestSpecification): boolean => SLOW.test(moduleId);
  const others = files.filter((file) => !isSlow(file));
  const mixed = files.filter(isSlow).flatMap((file) => [file, ...others.splice(0, BETWEEN)]);
  return [...mixed, ...others];
}
