export { createTestDatabase, openPool, type TestDatabase, waitingForLocks } from './database.js';
export { eventually, leastOf, PATIENCE_MS } from './eventually.js';
export { type ApiAnswer, HttpClient, statusOver } from './http-client.js';
export { loggedCall } from './logged-call.js';
export { startTestService, type TestPartner, type TestService } from './service.js';
export { ADMIN_TOKEN, testEnvironment } from './settings.js';
export { type ReceivedWebhook, startReceiver, type TestReceiver } from './webhook-receiver.js';
