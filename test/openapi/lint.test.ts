import path from 'node:path';
import { expect, it } from 'vitest';
import { outputOf } from '../docs/program.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { whyMissing } from '../harness/why-missing.js';

/** Each linter loads all rules and three documents, while other tests keep the machine busy. */
const LINT_MS = 400_000;
const DOCUMENTS = ['partner', 'admin', 'portal'].map((port) =>
  path.join(PROJECT_ROOT, `docs/openapi/${port}.json`),
);
const QUICK_START = path.join(PROJECT_ROOT, 'docs/openapi/quick-start.arazzo.json');
const RULESET = path.join(PROJECT_ROOT, 'test/openapi/spectral.yaml');

const noSpectral = whyMissing('spectral', '--version');
const noRedocly = whyMissing('redocly', '--version');
for (const reason of [noSpectral, noRedocly])
  if (reason) console.warn(`the OpenAPI documents are not linted: ${reason}`);

it.skipIf(noSpectral !== null)('passes Spectral without findings', { timeout: LINT_MS }, async () => {
  // Findings make it exit with an error, which rejects.
  const options = ['--ruleset', RULESET, '--fail-severity', 'hint'];
  const said = await outputOf(['spectral', 'lint', ...options, ...DOCUMENTS], PROJECT_ROOT, '', LINT_MS);
  expect(said).toContain('No results');
});

it.skipIf(noRedocly !== null)('passes Redocly without findings', { timeout: LINT_MS }, async () => {
  const options = ['--extends', 'recommended', '--format', 'json'];
  const documents = [...DOCUMENTS, QUICK_START];
  const said = await outputOf(['redocly', 'lint', ...options, ...documents], PROJECT_ROOT, '', LINT_MS);
  expect(said.match(/"(errors|warnings)": \d+/g)).toEqual(
    documents.flatMap(() => ['"errors": 0', '"warnings": 0']),
  );
});
