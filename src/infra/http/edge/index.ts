/**
 * The HTTP edge of a port, below Nest: everything that a call can be refused for before a handler runs (D5 to D9, D21).
 * Used by src/apps/http-app.ts, which gives it the port's authenticator and the access log. In the order of a call:
 * `server` (socket, limits, Fastify), `pipeline` (request id, authentication, `head-checks`), `body`, then Nest's guards
 * and pipes; `problem` writes every error body and `socket-problems` those that Fastify never sees; `connection` and
 * `call` see to it that each call is recorded exactly once (D38), and `call-span` that it is traced (D53).
 */
export type {
  Authenticator,
  AuthResult,
  CallRecorder,
  EdgeCall,
  EdgeOptions,
  EdgeServices,
  FinishedCall,
} from './contract.js';
export { clientAddress, pathOf } from './call.js';
export { METHODS } from './call-span.js';
export { NO_STORE } from './contract.js';
export { ProblemFilter } from './problem.js';
export { createEdgeAdapter } from './server.js';
