import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';

const DOCUMENTS = ['partner', 'admin'] as const;
const FOLDER = path.resolve(import.meta.dirname, '../../../docs/openapi');

/** Where the admin port serves the OpenAPI documents of both APIs (D3). */
export const API_DOCUMENT_PATHS = DOCUMENTS.map((name) => `/openapi/${name}.json`);

/** Serves the committed documents, which the check keeps equal to the code. */
export function serveApiDocuments(fastify: FastifyInstance): void {
  for (const name of DOCUMENTS) {
    fastify.get(`/openapi/${name}.json`, async (_request, reply) =>
      reply.header('content-type', 'application/json; charset=utf-8').send(readDocument(name)),
    );
  }
}

function readDocument(name: string): string {
  // From dist/src/apps and, in tests, from src/apps: one folder more or less up to the root.
  const candidates = [FOLDER, path.resolve(import.meta.dirname, '../../docs/openapi')];
  for (const folder of candidates) {
    try {
      return readFileSync(path.join(folder, `${name}.json`), 'utf8');
    } catch {
      continue;
    }
  }
  throw new Error(`docs/openapi/${name}.json is not part of this installation`);
}
