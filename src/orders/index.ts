export { OrdersAdminModule } from './admin/orders-admin.module.js';
export { OrdersApiModule } from './api/orders-api.module.js';
export { OrderEntity } from './order.entity.js';
export { OrderJobsRepository } from './order-jobs.repository.js';
export { OrdersModule } from './orders.module.js';
export { OrdersWorkerModule } from './worker/orders-worker.module.js';
