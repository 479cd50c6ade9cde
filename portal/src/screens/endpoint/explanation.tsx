import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { explanationQuery } from '../../api/queries.ts';
import type { Delivery, Endpoint, Explanation } from '../../api/types.ts';
import { Callout } from '../../components/callout.tsx';
import { Facts } from '../../components/facts.tsx';
import { Loading } from '../../components/feedback.tsx';
import { Countdown, TextWithTimes } from '../../components/time.tsx';

const OWNERS: Record<Explanation['owner'], string> = {
  you: 'You',
  us: 'We can',
  network: 'Neither of us: a network problem',
  nobody: 'No one: nothing to fix',
};

/** Why a delivery failed or waits. */
export function DeliveryExplanation({ delivery }: { delivery: Delivery }) {
  const state = `${delivery.status} ${delivery.attempt_count}`;
  return <Answer query={useQuery(explanationQuery('deliveries', delivery.id, state))} />;
}

/** Why an endpoint was blocked or disabled. */
export function EndpointExplanation({ endpoint }: { endpoint: Endpoint }) {
  const state = `${endpoint.status} ${endpoint.consecutive_blocks}`;
  return <Answer query={useQuery(explanationQuery('webhook-endpoints', endpoint.id, state))} />;
}

/** Reserves space for the text until it arrives, so that nothing below moves under the pointer. */
function Answer({
  query: { data, isPending },
}: {
  query: Pick<UseQueryResult<Explanation>, 'data' | 'isPending'>;
}) {
  if (data) return <Words explanation={data} />;
  return isPending ? (
    <Callout tone="warn" className="explanation">
      <Loading lines={4} />
    </Callout>
  ) : null;
}

function Words({ explanation }: { explanation: Explanation }) {
  const { summary, owner, cure, evidence, next, next_at: nextAt } = explanation;
  return (
    <Callout tone="warn" className="explanation" title={summary} label="Explanation">
      <Facts
        kind="wide"
        entries={[
          ['Who can fix it', OWNERS[owner]],
          ['How to fix it', <TextWithTimes key="cure" text={cure} />],
          [
            'Evidence',
            evidence.length === 0 ? null : (
              <ul key="evidence">
                {evidence.map((fact) => (
                  <li key={fact}>
                    <TextWithTimes text={fact} />
                  </li>
                ))}
              </ul>
            ),
          ],
          ['What happens next', next],
          ['When', nextAt && <Countdown key="when" to={nextAt} />],
        ]}
      />
    </Callout>
  );
}
