import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { onDatabase } from '../harness/database.js';

/** Copies a database that nobody is connected to. Answers the URL of the copy. */
export async function cloneDatabase(url: string): Promise<string> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  await onServer(`CREATE DATABASE ${name} TEMPLATE ${nameOf(url)} STRATEGY FILE_COPY`);
  const copy = new URL(url);
  copy.pathname = `/${name}`;
  return copy.href;
}

export function dropDatabase(url: string): Promise<void> {
  return onServer(`DROP DATABASE IF EXISTS ${nameOf(url)} WITH (FORCE)`);
}

/** Runs statements with triggers and foreign keys off, as whoever corrupts a table does. */
export function corrupt(url: string, statements: string): Promise<void> {
  return onDatabase(url, `SET session_replication_role = replica; ${statements}`);
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

function onServer(statement: string): Promise<void> {
  return onDatabase(inject('postgresUrl'), statement);
}
