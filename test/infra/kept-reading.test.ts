import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { afterEach, expect, it, vi } from 'vitest';
import { showReading } from '../../src/infra/kept-reading.js';

afterEach(() => vi.restoreAllMocks());

it('omits a failed reading from /metrics and logs the reason', async () => {
  const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const registry = new Registry();
  const read = () => Promise.reject(new Error('relation "orders" does not exist'));
  showReading(registry, { name: 'order_oldest_due_seconds', help: 'Age.' }, read);
  expect(await registry.metrics()).not.toMatch(/^order_oldest_due_seconds /m);
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    'order_oldest_due_seconds cannot be read: relation "orders" does not exist',
  );
});
