export { createEdgeAdapter } from './create-edge-adapter.js';
export { clientAddress, pathOf } from './edge-call.js';
export { ProblemFilter } from './problem.filter.js';
export type { Admission, CallRecorder, EdgeCall, EdgeGate, EdgeOptions, FinishedCall } from './contract.js';
