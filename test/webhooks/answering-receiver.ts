import { startReceiver, type TestReceiver } from '../harness/index.js';

const receivers: TestReceiver[] = [];

/** Answers these statuses one after the other, and the last of them from then on. */
export async function receiverThatAnswers(...statuses: number[]): Promise<TestReceiver> {
  const receiver = await startReceiver();
  receivers.push(receiver);
  receiver.answer = (nth, _webhook, response) => {
    response.writeHead(statuses[Math.min(nth, statuses.length - 1)] ?? 200).end(`answer ${nth}`);
  };
  return receiver;
}

/** For `afterEach`: closes those that the test has started. */
export async function closeReceivers(): Promise<void> {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
}
