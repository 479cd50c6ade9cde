import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { whyMissing } from '../harness/why-missing.js';
import { RolesApart, ROLES } from './roles-apart.js';
import { metricsIn, readAlertRules, readDashboards, RULE_TESTS_FILES, RULES_FILE } from './rule-files.js';

const rules = readAlertRules();
const dashboards = readDashboards();
const runbook = readFileSync(path.join(PROJECT_ROOT, 'docs/operations.md'), 'utf8');

let roles: RolesApart;
let shown: ReadonlySet<string>;

beforeAll(async () => {
  roles = await RolesApart.start();
  const scrapes = await Promise.all(ROLES.map((role) => roles.scrape(role)));
  shown = new Set(scrapes.flatMap(({ names }) => [...names]));
});
afterAll(() => roles.stop());

describe('dashboards', () => {
  it('there is one for each role, with panels that say what they show', () => {
    expect(dashboards.map(({ file }) => file).sort()).toEqual(ROLES.map((role) => `${role}.json`).sort());
    for (const { file, panels } of dashboards)
      expect(panels.filter(({ title, description }) => !title || !description).map(() => file)).toEqual([]);
  });

  it('every metric of a panel exists in a scrape of the running roles', () => {
    const expressions = dashboards.flatMap(({ file, panels }) =>
      panels.flatMap(({ title, targets }) =>
        targets.map(({ expr }) => ({ place: `${file}: ${title}`, expr })),
      ),
    );
    expect(expressions.length).toBeGreaterThan(50);
    const unknown = expressions.flatMap(({ place, expr }) => {
      const names = metricsIn(expr);
      return names.length === 0 ? [`${place}: no metric`] : names.filter((name) => !shown.has(name));
    });
    expect(unknown).toEqual([]);
  });
});

describe('alerts', () => {
  it('every metric of a rule exists in a scrape of the running roles', () => {
    expect(rules.length).toBe(readFileSync(RULES_FILE, 'utf8').match(/- alert:/g)!.length);
    for (const { name, expression } of rules) {
      const names = metricsIn(expression);
      expect(names.length, name).toBeGreaterThan(0);
      expect(
        names.filter((each) => !shown.has(each)),
        name,
      ).toEqual([]);
    }
  });

  it('each has a runbook entry that says what it means, what to check, how to fix it and what not to do', () => {
    const entries = new Map(
      runbook
        .split(/^### /m)
        .slice(1)
        .map((entry) => [/^\w+/.exec(entry)![0], entry]),
    );
    expect([...entries.keys()].sort()).toEqual(rules.map(({ name }) => name).sort());
    for (const { name, runbook: link, severity } of rules) {
      expect(link).toBe(`docs/operations.md#${name.toLowerCase()}`);
      expect(['page', 'ticket']).toContain(severity);
      for (const part of ['**Means.** ', '**Check.** ', '**Fix.**', '**Do not.** '])
        expect(entries.get(name), `${name}: ${part}`).toContain(part);
    }
  });

  it('the runbook names only metrics and panels that there are', () => {
    const titles = new Set(dashboards.flatMap(({ panels }) => panels.map(({ title }) => title)));
    const named = [...runbook.matchAll(/"([A-Z][^"]+)"/g)].map(([, title]) => title!.replaceAll('\n', ' '));
    expect(named.filter((title) => !titles.has(title))).toEqual([]);
  });

  const missing = whyMissing('promtool', '--version');
  if (missing !== null) console.warn(`promtool is not there (apt-get install prometheus): ${missing}`);

  it.skipIf(missing !== null)(
    'promtool: each fires on its symptom and stays quiet without it',
    () => {
      const run = (...args: string[]): string => execFileSync('promtool', args, { encoding: 'utf8' });
      expect(run('check', 'rules', RULES_FILE)).toContain(`${rules.length} rules found`);
      expect(run('test', 'rules', ...RULE_TESTS_FILES)).toContain('SUCCESS');
      const tests = RULE_TESTS_FILES.map((file) => readFileSync(file, 'utf8')).join('');
      for (const { name } of rules) {
        expect(tests, name).toContain(`- name: ${name} fires`);
        expect(tests, name).toContain(`- name: ${name} stays quiet`);
      }
    },
    // Fifteen seconds of computing, which took over four minutes where two whole runs shared two cores.
    900_000,
  );
});
