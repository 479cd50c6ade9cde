import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../../api/client.ts';
import { endpointQuery } from '../../api/queries.ts';
import { useScope } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { ErrorNote, Loading } from '../../components/feedback.tsx';
import { InItsMode } from '../../layout/in-its-mode.tsx';
import { EndpointState } from '../webhooks/endpoint-state.tsx';
import { EndpointSwitch } from '../webhooks/endpoint-switch.tsx';
import { RotateSecretDialog } from '../webhooks/rotate-secret.tsx';
import { Sparkline } from '../webhooks/sparkline.tsx';
import { useSendTest } from '../webhooks/send-test.ts';
import { namesOf } from '../webhooks/subscriptions.ts';
import { DeleteEndpointDialog } from './delete-endpoint.tsx';
import { DeliveryDrawer } from './delivery-drawer.tsx';
import { DeliveryLog } from './delivery-log.tsx';
import { EditEndpointDialog } from './edit-endpoint.tsx';
import { EnableOptionsDialog } from './enable-options.tsx';
import { EndpointExplanation } from './explanation.tsx';
import { ReplayDialog } from './replay-dialog.tsx';
import { ReplayProgress } from './replay-progress.tsx';

const endpointRoute = getRouteApi('/developers/webhooks/$endpointId');

export function EndpointPage() {
  const { endpointId } = endpointRoute.useParams();
  const query = useQuery(endpointQuery(endpointId));
  if (query.isPending) return <Loading />;
  if (query.isError && query.error instanceof ApiError && query.error.status === 404)
    return (
      <>
        <h1>Endpoint not found</h1>
        <p className="lead">
          It may have been deleted. <Link to="/developers/webhooks">Webhooks</Link> lists your endpoints.
        </p>
      </>
    );
  if (!query.data) return <ErrorNote error={query.error} retry={() => void query.refetch()} />;
  const { mode, url } = query.data;
  return (
    <InItsMode what="endpoint" mode={mode} heading={<h1 className="endpoint-url">{url}</h1>}>
      <Page endpoint={query.data} />
    </InItsMode>
  );
}

function Page({ endpoint }: { endpoint: Endpoint }) {
  const { delivery, replay } = endpointRoute.useSearch();
  const navigate = endpointRoute.useNavigate();
  const close = () =>
    void navigate({ search: ({ delivery: _closed, ...others }) => others, resetScroll: false });
  return (
    <>
      <p className="crumbs">
        <Link to="/developers/webhooks">Webhooks</Link>
      </p>
      <div className="screen-head">
        <h1 className="endpoint-url">{endpoint.url}</h1>
        <EndpointSwitch endpoint={endpoint} />
      </div>
      <p className="sub">
        <code>{endpoint.id}</code> <CopyButton text={endpoint.id} label="Copy endpoint id" />{' '}
        {namesOf(endpoint.event_types)}
        {endpoint.description && ` · ${endpoint.description}`}
      </p>
      <div className="card-body">
        <EndpointState endpoint={endpoint} />
        <Sparkline endpointId={endpoint.id} />
      </div>
      {endpoint.status !== 'enabled' && endpoint.disabled_reason !== 'manual' && (
        <EndpointExplanation endpoint={endpoint} />
      )}
      <Actions endpoint={endpoint} />
      {replay && <ReplayProgress key={replay} id={replay} endpoint={endpoint} />}
      <DeliveryLog endpoint={endpoint} />
      {delivery && <DeliveryDrawer key={delivery} id={delivery} endpointId={endpoint.id} onClose={close} />}
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
      <div className="row-actions">
        {mayWrite && (
          <button type="button" className="button" disabled={test.busy} onClick={() => void test.run()}>
            Send test event
          </button>
        )}
        {mayReplay && (
          <button type="button" className="button" onClick={() => setOpen('replay')}>
            Replay
          </button>
        )}
        {mayWrite && (
          <>
            {endpoint.status === 'disabled' && undelivered && (
              <button type="button" className="button" onClick={() => setOpen('enable')}>
                Choose what to send
              </button>
            )}
            <button type="button" className="button" onClick={() => setOpen('rotate')}>
              Rotate secret
            </button>
            <button type="button" className="button" onClick={() => setOpen('edit')}>
              Edit
            </button>
            <button type="button" className="button danger-quiet" onClick={() => setOpen('delete')}>
              Delete
            </button>
          </>
        )}
      </div>
      <ErrorNote error={test.error} />
      {open === 'rotate' && <RotateSecretDialog endpoint={endpoint} onClose={close} />}
      {open === 'edit' && <EditEndpointDialog endpoint={endpoint} onClose={close} />}
      {open === 'delete' && <DeleteEndpointDialog endpoint={endpoint} onClose={close} />}
      {open === 'enable' && <EnableOptionsDialog endpoint={endpoint} onClose={close} />}
      {open === 'replay' && <ReplayDialog endpoint={endpoint} onClose={close} />}
    </>
  );
}
