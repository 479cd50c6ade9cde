import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../../api/client.ts';
import { endpointQuery } from '../../api/queries.ts';
import { useScope } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { Id } from '../../components/copy-button.tsx';
import { ErrorNote, Loading } from '../../components/feedback.tsx';
import { Icon } from '../../components/icon.tsx';
import { ActionMenu } from '../../components/menu.tsx';
import { Url } from '../../components/url.tsx';
import { InItsMode, useIsShown } from '../../layout/in-its-mode.tsx';
import { Screen } from '../../layout/screen.tsx';
import { EndpointReason } from '../webhooks/endpoint-state.tsx';
import { EndpointSwitch } from '../webhooks/endpoint-switch.tsx';
import { RotateSecretDialog } from '../webhooks/rotate-secret.tsx';
import { useSendTest } from '../webhooks/send-test.ts';
import { namesOf } from '../webhooks/subscriptions.ts';
import { DeleteEndpointDialog } from './delete-endpoint.tsx';
import { DeliveryLog } from './delivery-log.tsx';
import { EditEndpointDialog } from './edit-endpoint.tsx';
import { EnableOptionsDialog } from './enable-options.tsx';
import { EndpointFigures } from './endpoint-figures.tsx';
import { EndpointExplanation } from './explanation.tsx';
import { ReplayDialog } from './replay-dialog.tsx';
import { ReplayProgress } from './replay-progress.tsx';

const endpointRoute = getRouteApi('/developers/webhooks/$endpointId');
const PARENT = { to: '/developers/webhooks', name: 'Webhooks' };

export function EndpointPage() {
  const { endpointId } = endpointRoute.useParams();
  const query = useQuery(endpointQuery(endpointId));
  const endpoint = query.data;
  const isShown = useIsShown(endpoint?.mode);
  if (query.isError && query.error instanceof ApiError && query.error.status === 404)
    return (
      <Screen
        name="Endpoint not found"
        parent={PARENT}
        lead={
          <>
            It may have been deleted. <Link to="/developers/webhooks">Webhooks</Link> lists your endpoints.
          </>
        }
      />
    );
  return (
    <Screen
      name={endpoint ? new URL(endpoint.url).host : 'Endpoint'}
      parent={PARENT}
      title={endpoint ? <Url text={endpoint.url} /> : 'Endpoint'}
      under={
        endpoint &&
        isShown && (
          <>
            <Id text={endpoint.id} what="endpoint id" />
            <span>{namesOf(endpoint.event_types)}</span>
            {endpoint.description && <span>{endpoint.description}</span>}
          </>
        )
      }
      state={
        endpoint &&
        isShown && (
          <div className="endpoint-state">
            <EndpointSwitch endpoint={endpoint} />
            {(endpoint.status !== 'enabled' || endpoint.previous_secret_until) && (
              <EndpointReason endpoint={endpoint} />
            )}
          </div>
        )
      }
      actions={endpoint && isShown && <Actions endpoint={endpoint} />}
    >
      {query.isPending && <Loading />}
      {query.isError && !endpoint && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {endpoint && (
        <InItsMode what="endpoint" mode={endpoint.mode}>
          <Content endpoint={endpoint} />
        </InItsMode>
      )}
    </Screen>
  );
}

function Content({ endpoint }: { endpoint: Endpoint }) {
  const { replay } = endpointRoute.useSearch();
  const isInTrouble = endpoint.status !== 'enabled' && endpoint.disabled_reason !== 'manual';
  return (
    <>
      {(isInTrouble || endpoint.failing_since) && <EndpointExplanation endpoint={endpoint} />}
      {replay && <ReplayProgress key={replay} id={replay} endpoint={endpoint} />}
      <EndpointFigures endpoint={endpoint} />
      <DeliveryLog endpoint={endpoint} />
    </>
  );
}

type Open = 'rotate' | 'edit' | 'delete' | 'replay' | 'enable' | null;

function Actions({ endpoint }: { endpoint: Endpoint }) {
  const mayWrite = useScope('webhooks:write');
  const mayReplay = useScope('webhooks:replay');
  const [open, setOpen] = useState<Open>(null);
  const test = useSendTest(endpoint);
  const close = () => setOpen(null);
  const undelivered = (endpoint.held_count ?? 0) + (endpoint.failed_since_last_success ?? 0) > 0;
  return (
    <>
      {mayWrite && endpoint.status === 'disabled' && undelivered && (
        <button type="button" className="button" onClick={() => setOpen('enable')}>
          Choose what to send
        </button>
      )}
      {mayWrite && (
        <button type="button" className="button" aria-busy={test.busy} onClick={() => void test.run()}>
          <Icon name="send" />
          Send test event
        </button>
      )}
      {mayReplay && (
        <button type="button" className="button" onClick={() => setOpen('replay')}>
          <Icon name="refresh" />
          Replay
        </button>
      )}
      {mayWrite && (
        <ActionMenu
          entries={[
            { name: 'Edit endpoint', icon: 'edit', onSelect: () => setOpen('edit') },
            { name: 'Rotate secret', icon: 'key', onSelect: () => setOpen('rotate') },
            { name: 'Delete endpoint', icon: 'trash', danger: true, onSelect: () => setOpen('delete') },
          ]}
        />
      )}
      <ErrorNote error={test.error} />
      {open === 'rotate' && <RotateSecretDialog endpoint={endpoint} onClose={close} />}
      {open === 'edit' && <EditEndpointDialog endpoint={endpoint} onClose={close} />}
      {open === 'delete' && <DeleteEndpointDialog endpoint={endpoint} onClose={close} />}
      {open === 'enable' && <EnableOptionsDialog endpoint={endpoint} onClose={close} />}
      {open === 'replay' && <ReplayDialog endpoint={endpoint} onClose={close} />}
    </>
  );
}
