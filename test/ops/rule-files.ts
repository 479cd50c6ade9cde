import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PROJECT_ROOT } from '../harness/child-process.js';

export const RULES_FILE = path.join(PROJECT_ROOT, 'ops/alerts/service.yaml');
export const RULE_TESTS_FILES = ['service', 'hours'].map((name) =>
  path.join(PROJECT_ROOT, `ops/alerts/tests/${name}.test.yaml`),
);
const DASHBOARDS = path.join(PROJECT_ROOT, 'ops/dashboards');

export interface AlertRule {
  readonly name: string;
  readonly expression: string;
  readonly runbook: string;
  readonly severity: string;
}

/** Parses alert rules in the style of this repository: one key per line, with an inline or folded expression. */
export function readAlertRules(): readonly AlertRule[] {
  const blocks = readFileSync(RULES_FILE, 'utf8')
    .split(/^ {6}- alert: /m)
    .slice(1);
  return blocks.map((block) => ({
    name: /^\w+/.exec(block)![0],
    expression: /^ {8}expr: (?:>-\n)?([\s\S]*?)\n {8}(?=for|labels)/m.exec(block)![1]!,
    runbook: /runbook: (\S+)/.exec(block)?.[1] ?? '',
    severity: /severity: (\w+)/.exec(block)?.[1] ?? '',
  }));
}

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly targets: readonly { readonly expr: string }[];
}

export interface Dashboard {
  readonly file: string;
  readonly uid: string;
  readonly panels: readonly Panel[];
}

export function readDashboards(): readonly Dashboard[] {
  return readdirSync(DASHBOARDS)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ file, ...(JSON.parse(readFileSync(path.join(DASHBOARDS, file), 'utf8')) as object) }))
    .map((dashboard) => dashboard as Dashboard);
}

/** PromQL keywords that are neither metrics nor functions. */
const WORDS = new Set(['and', 'or', 'unless', 'offset', 'bool', 'on', 'ignoring', 'by', 'without']);

/** The metrics that a PromQL expression reads. */
export function metricsIn(expression: string): readonly string[] {
  const bare = expression
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}/g, ' ')
    .replaceAll(/\[[^\]]*\]/g, ' ')
    .replaceAll(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ');
  const names = [...bare.matchAll(/(?<![\w.])([a-zA-Z_:][\w:]*)(?!\w)(?!\s*\()/g)].map(([, name]) => name!);
  return names.filter((name) => !WORDS.has(name));
}
