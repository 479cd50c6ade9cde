import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that run for half a minute or more, though some are short: their tests are in suites that two files share. */
const SLOW =
  /test\/(live|live-scenarios|chaos|reconciliation)\/|lifecycle\/polling|embedded-start|webhooks\/(schedule|replay)\.test/;

/** A slow file that begins last would have one worker run on alone. */
export class SlowFirstSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification): boolean => SLOW.test(moduleId);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}
