export { OrdersAdminModule } from './admin/orders-admin.module.js';
export { OrdersApiModule } from './api/orders-api.module.js';
export { HurryOrders } from './hurry-orders.js';
export { OrderEntity } from './order.entity.js';
export { OrdersModule } from './orders.module.js';
export { OrdersWorkerModule } from './worker/orders-worker.module.js';
