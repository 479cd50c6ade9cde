import { it } from 'vitest';
import { createTestDatabase } from '../harness/index.js';
import { createDataSource } from '../../src/infra/database/index.js';
import { ClaimsRepository } from '../../src/webhooks/worker/claims.repository.js';
import { ENTITIES } from '../../src/apps/entities.js';
it('plans', async () => {
  const db = await createTestDatabase();
  await db.pool.query(`insert into partners(id,name) values('p','x');
   insert into webhook_endpoints(id,partner_id,mode,url,secret,enabled) select 'whe_'||lpad(i::text,4,'0'),'p','live','u','s', i%2=0 from generate_series(1,2000) i;
   insert into events(id,partner_id,mode,type,body,created_at) select 'evt_'||i,'p','live','t','{}',now() from generate_series(1,1000) i;
   insert into webhook_deliveries(id,endpoint_id,event_id,event_type,kind,status,next_attempt_at) select 'a'||i,'whe_0002','evt_'||(1+i%1000),'t','event','pending',now()-interval '1 hour'+i*interval '1 ms' from generate_series(1,200000) i;
   insert into webhook_deliveries(id,endpoint_id,event_id,event_type,kind,status,next_attempt_at) select 'b'||i,'whe_0001','evt_'||(1+i%1000),'t','event','pending',now()-interval '1 hour'+i*interval '1 ms' from generate_series(1,200000) i;
   insert into webhook_deliveries(id,endpoint_id,event_id,event_type,kind,status,next_attempt_at) select 'c'||i,'whe_'||lpad((1+i%2000)::text,4,'0'),'evt_'||(1+i%1000),'t','event','pending',now()+interval '1 hour' from generate_series(1,20000) i;`);
  const ds = createDataSource({ url: db.url, poolMax: 4, entities: ENTITIES, applicationName: 'x' });
  await ds.initialize();
  const repo = new ClaimsRepository(ds.manager);
  const time = async (name: string, f: () => Promise<unknown>) => { for (let k = 0; k < 3; k++) { const t = performance.now(); const r = await f(); console.log(name, (performance.now() - t).toFixed(1), Array.isArray(r) ? r.length : r); } };
  for (const round of ['no stats', 'analyzed']) {
    await time(round + ' claim', () => repo.claim({ owner: 'o', leaseMs: 60000 }, 'whe_0002', 16));
    await time(round + ' claim disabled', () => repo.claim({ owner: 'o', leaseMs: 60000 }, 'whe_0001', 16));
    await time(round + ' next', () => repo.msUntilNextDue('whe_0002'));
    await time(round + ' sweep', () => repo.endpointsWithDueDeliveries('', 1000));
    await db.pool.query('vacuum analyze webhook_deliveries, webhook_endpoints, events');
  }
  await ds.destroy(); await db.drop();
}, 120000);
