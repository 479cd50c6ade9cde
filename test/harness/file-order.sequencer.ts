import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that run for half a minute or more, mostly waiting. Also small ones that would otherwise end last. */
const SLOW =
  /test\/(live|live-scenarios|chaos|reconciliation|restore|redis)\/|esim-sync\/polling|e2e\/(embedded|delayed)|portal\/(access|lost)|list-plans|webhooks\/(leases|hostile-receivers|schedule|replay)\.test/;
/** Number of other files between two of them. */
const BETWEEN = 5;

/**
 * Starts slow files early, because otherwise the last one would run alone at the end. It does not start them all at
 * once, which would leave the cores idle. Files with a separate process stay together, because the shared processes end
 * between them.
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
