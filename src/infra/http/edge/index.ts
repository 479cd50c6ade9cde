export { createEdgeAdapter } from './create-edge-adapter.js';
export { ProblemFilter } from './problem.filter.js';
export type { Admission, CallRecorder, EdgeCall, EdgeGate, EdgeOptions, FinishedCall } from './contract.js';
