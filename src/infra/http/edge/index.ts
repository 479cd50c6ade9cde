/**
 * The HTTP edge of a port, below Nest: every check that can refuse a call before a handler runs (D5 to D9, D21). Used
 * by src/apps/http-app.ts, which passes the port's authenticator and the access log. In call order: `server` (socket,
 * limits, Fastify), `pipeline` (request id, authentication, `head-checks`), `body`, then Nest's guards and pipes.
 * `problem` writes every error body, and `socket-problems` those that Fastify never sees. `connection` and `call`
 * ensure that each call is recorded exactly once (D38), and `call-span` traces it (D53).
 */
export type {
  Authenticator,
  AuthResult,
  CallRecorder,
  EdgeCall,
  EdgeOptions,
  EdgeServices,
  ErrorPage,
  FinishedCall,
} from './contract.js';
export { clientAddress, pathOf } from './call.js';
export { METHODS } from './call-span.js';
export { NO_STORE } from './contract.js';
export { ProblemFilter } from './problem.js';
export { createEdgeAdapter } from './server.js';
