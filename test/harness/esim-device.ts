import { expect } from 'vitest';
import { DOCUMENT_EVENT_TYPES } from '../../src/events/index.js';
import type { ApiAnswer, HttpClient } from './http-client.js';
import { issueEsim, type Json, readFeed } from './order-steps.js';

type Operation = 'activate' | 'consume' | 'expire';

/** Simulates the device of sandbox eSIMs and reads the results. */
export class EsimDevice {
  constructor(private readonly api: HttpClient) {}

  play(id: string, operation: Operation, body?: unknown): Promise<ApiAnswer> {
    return this.api.post(`/v1/sandbox/esims/${id}/${operation}`, body);
  }

  /** Runs an operation that must return 200, and returns the eSIM. */
  async played(id: string, operation: Operation, body?: unknown): Promise<Json> {
    const answer = await this.play(id, operation, body);
    expect(answer.status, answer.text).toBe(200);
    return answer.body.data as Json;
  }

  /** Issues and activates an eSIM. */
  async activeEsim(packageId = 'pkg_fr_1gb_7d'): Promise<string> {
    const id = await issueEsim(this.api, packageId);
    await this.played(id, 'activate');
    return id;
  }

  async read(id: string): Promise<Json> {
    return (await this.api.get(`/v1/esims/${id}`)).body.data as Json;
  }

  async usage(id: string): Promise<Json> {
    return (await this.api.get(`/v1/esims/${id}/usage`)).body.data as Json;
  }

  /** The fields that every event about the eSIM starts with (D28). */
  async identity(id: string): Promise<Json> {
    const { order_id, iccid } = await this.read(id);
    return { esim_id: id, order_id, iccid };
  }

  /** The eSIM's own events, in feed order. */
  async events(id: string): Promise<Json[]> {
    return (await readFeed(this.api)).filter((event) => event['data'].esim_id === id);
  }

  /** The types of its events that every endpoint receives (D58). */
  async eventTypes(id: string): Promise<string[]> {
    const types: readonly string[] = DOCUMENT_EVENT_TYPES;
    return (await this.events(id))
      .map((event) => event['type'] as string)
      .filter((type) => types.includes(type));
  }

  /** The announced thresholds, in feed order. */
  async levels(id: string): Promise<number[]> {
    const events = (await this.events(id)).filter((event) => event['type'] === 'esim.usage.threshold');
    return events.map((event) => event['data'].threshold_percent as number);
  }
}
