import { DOCUMENT_EVENT_TYPES, EVENT_TYPES, type EventType } from '../events/index.js';

/** Subscribes an endpoint to every type, future ones included. */
const EVERY_TYPE = '*';

/** Values of an endpoint's `event_types`; null stands for the document's types (D58). */
export const SUBSCRIPTIONS = [...EVENT_TYPES, EVERY_TYPE] as const;
export type Subscription = EventType | typeof EVERY_TYPE;

export const EVENT_TYPES_RULE = `Null means ${DOCUMENT_EVENT_TYPES.map((type) => `\`${type}\``).join(', ')}, and never another type. \`*\` means every type, future ones included.`;

/** SQL condition that endpoint `w` receives events of the type `type`, an SQL expression (D58). */
export function subscribesTo(type: string): string {
  return `coalesce(w.event_types, '{${DOCUMENT_EVENT_TYPES.join(',')}}') && ARRAY[${type}, '${EVERY_TYPE}']`;
}

/** Everything that an endpoint with these `event_types` subscribes to. */
export function subscriptionsOf(eventTypes: readonly Subscription[] | null): readonly Subscription[] {
  if (eventTypes === null) return DOCUMENT_EVENT_TYPES;
  return eventTypes.includes(EVERY_TYPE) ? SUBSCRIPTIONS : eventTypes;
}
