/**
 * Partner programs for generated clients in three languages. Each places an order and reads it back with its eSIM, its
 * events and a refusal, and prints the same JSON. `BASE_URL` and `API_KEY` are environment variables.
 */

export const PYTHON_MAIN = `
import json
import os
import time
import uuid

import openapi_client as api

client = api.ApiClient(api.Configuration(host=os.environ["BASE_URL"], access_token=os.environ["API_KEY"]))
orders = api.OrdersApi(client)
accepted = orders.place_order_with_http_info(uuid.uuid4().hex, api.PlaceOrderRequest(package_id="pkg_fr_1gb_7d"))
order = accepted.data.data
while order.status in ("pending", "processing"):
    time.sleep(0.1)
    order = orders.get_order(order.id).data
esim = api.EsimsApi(client).get_esim(order.esims[0].esim_id).data
try:
    orders.get_order("ord_unknown")
    refusal = None
except api.exceptions.NotFoundException as error:
    refusal = error.data.code
print(json.dumps({
    "accepted": [accepted.status_code, accepted.data.data.id == order.id],
    "order": [order.status, order.quantity, order.unit_price.currency, order.failure],
    "issued_at": order.issued_at.isoformat(),
    "esim": [esim.status, esim.data.total_bytes, esim.confirmation_code],
    "events": [event.actual_instance.data.order_id == order.id for event in api.EventsApi(client).list_events().data],
    "refusal": refusal,
}))
`;

export const GO_MAIN = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	client "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: os.Getenv("BASE_URL")}}
	api := client.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), client.ContextAccessToken, os.Getenv("API_KEY"))
	key := fmt.Sprintf("order-%d", time.Now().UnixNano())

	accepted, answer, err := api.OrdersAPI.PlaceOrder(ctx).
		IdempotencyKey(key).
		PlaceOrderRequest(*client.NewPlaceOrderRequest("pkg_fr_1gb_7d")).
		Execute()
	check(err)
	order := accepted.Data
	for order.Status == "pending" || order.Status == "processing" {
		time.Sleep(100 * time.Millisecond)
		read, _, err := api.OrdersAPI.GetOrder(ctx, order.Id).Execute()
		check(err)
		order = read.Data
	}
	esim, _, err := api.EsimsAPI.GetEsim(ctx, order.Esims[0].EsimId).Execute()
	check(err)
	feed, _, err := api.EventsAPI.ListEvents(ctx).Execute()
	check(err)
	events := []bool{}
	for _, event := range feed.Data {
		events = append(events, event.OrderIssuedEvent.Data.OrderId == order.Id)
	}
	_, _, err = api.OrdersAPI.GetOrder(ctx, "ord_unknown").Execute()
	refusal := err.(*client.GenericOpenAPIError).Model().(client.Problem)
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"accepted":  []any{answer.StatusCode, accepted.Data.Id == order.Id},
		"order":     []any{order.Status, order.Quantity, order.UnitPrice.Currency, order.Failure.Get()},
		"issued_at": order.IssuedAt.Get(),
		"esim":      []any{esim.Data.Status, esim.Data.Data.TotalBytes.Get(), esim.Data.ConfirmationCode.Get()},
		"events":    events,
		"refusal":   refusal.Code,
	}))
}
`;

export const TYPESCRIPT_MAIN = `
import { Configuration, EsimsApi, EventsApi, OrdersApi, ResponseError, type Problem } from './client';

const configuration = new Configuration({
  basePath: process.env['BASE_URL']!,
  accessToken: process.env['API_KEY']!,
});
const orders = new OrdersApi(configuration);
const accepted = await orders.placeOrderRaw({
  idempotencyKey: crypto.randomUUID(),
  placeOrderRequest: { packageId: 'pkg_fr_1gb_7d' },
});
const first = (await accepted.value()).data;
let order = first;
while (order.status === 'pending' || order.status === 'processing') {
  await new Promise((resolve) => setTimeout(resolve, 100));
  order = (await orders.getOrder({ id: order.id })).data;
}
const esim = (await new EsimsApi(configuration).getEsim({ id: order.esims[0]!.esimId })).data;
const events = (await new EventsApi(configuration).listEvents()).data;
const refusal = await orders.getOrder({ id: 'ord_unknown' }).then(
  () => null,
  async (error: unknown) => ((await (error as ResponseError).response.json()) as Problem).code,
);
console.log(
  JSON.stringify({
    accepted: [accepted.raw.status, first.id === order.id],
    order: [order.status, order.quantity, order.unitPrice.currency, order.failure],
    issued_at: order.issuedAt?.toISOString(),
    esim: [esim.status, esim.data.totalBytes, esim.confirmationCode],
    events: events.map((event) => event.type === 'order.issued' && event.data.orderId === order.id),
    refusal,
  }),
);
`;
