export { completeDocument, SECURITY_SCHEME } from './complete-document.js';
export { exampleOf } from './bodies.js';
export { METHODS, type Method, type Port } from './operation.js';
