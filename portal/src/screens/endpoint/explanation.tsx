import { useQuery } from '@tanstack/react-query';
import { explanationQuery, lastFailedQuery } from '../../api/queries.ts';
import type { Delivery, Endpoint } from '../../api/types.ts';

/** Why it failed or waits, whose it is, and what to do. */
export function ExplanationNote({ delivery }: { delivery: Delivery }) {
  const { data } = useQuery(explanationQuery(delivery.id, delivery.attempt_count));
  if (!data) return null;
  const evidence = Array.isArray(data.evidence) ? data.evidence.join('\n') : data.evidence;
  return (
    <section className="note wait" aria-label="Explanation">
      <p>
        <strong>{data.summary ?? data.cause}</strong>
      </p>
      <dl className="facts">
        {(data.responsible ?? data.whose) && (
          <>
            <dt>Whose it is</dt>
            <dd>{data.responsible ?? data.whose}</dd>
          </>
        )}
        {data.cure && (
          <>
            <dt>What helps</dt>
            <dd>{data.cure}</dd>
          </>
        )}
        {evidence && (
          <>
            <dt>Evidence</dt>
            <dd>{evidence}</dd>
          </>
        )}
        {data.next && (
          <>
            <dt>What comes next</dt>
            <dd>{data.next}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

/** Why an endpoint was blocked or disabled: what its last failed delivery came to. */
export function EndpointExplanation({ endpoint }: { endpoint: Endpoint }) {
  const { data } = useQuery(lastFailedQuery(endpoint.id, endpoint.consecutive_blocks));
  return data ? <ExplanationNote delivery={data} /> : null;
}
