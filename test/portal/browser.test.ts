import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { findChromium, whyNoChromium } from '../harness/chromium.js';

const NOWHERE = { CHROMIUM_PATH: '/nowhere/chromium' };

describe('a machine without Chromium', () => {
  it('skips the tests of the portal with a reason, and fails them where the gate runs', () => {
    expect(findChromium(NOWHERE)).toBeNull();
    expect(whyNoChromium(NOWHERE)).toMatch(/no Chromium \(apt-get install chromium/);
    expect(() => whyNoChromium({ ...NOWHERE, REQUIRE_BROWSER: '1' })).toThrow(/no Chromium/);
    const gate = readFileSync('.ci/run', 'utf8');
    expect(gate.indexOf('export REQUIRE_BROWSER=1')).toBeGreaterThan(gate.indexOf('apt-get install'));
    expect(gate.indexOf('export REQUIRE_BROWSER=1')).toBeLessThan(gate.indexOf('\nnpm test'));
  });
});
