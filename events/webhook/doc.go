// Package webhook tells partners over HTTP what happened: signed, at least once, with bounded attempts (spec E11).
//
// A message is staged for each endpoint that wants it, in the caller's transaction: what is told is true, and what is true is
// told. [Webhooks.Run] sends, in any number of processes; a crash between the answer and its record sends the same message
// again, under the same webhook-id. There is no order among the messages of an endpoint.
//
//	Stage ──► pending ── 2xx ──► delivered
//	             │ anything else: the next turn of the schedule, or what Retry-After asks for
//	             ├─ schedule used up ──► dead ── Resend ──► pending
//	             └─ 410: endpoint gone, all that waits for it dead ── Reopen, Resend
//
// The signature is that of the Standard Webhooks specification: headers webhook-id, webhook-timestamp and
// webhook-signature ("v1," and the base64 of HMAC-SHA256 over "id.timestamp.body"), one for each secret that is valid, so that
// a secret can be changed without a moment when a receiver knows none.
//
// With [Config.Keys] messages rest encrypted, bound to their delivery; tenant, type, operation and attempts stay readable.
//
// An address is looked at when it is dialled, after names were resolved ([PublicOnly]): a name that points inside, or is
// pointed inside later, reaches nothing. Redirects are not followed, proxies not used, answers read up to a limit.
package webhook
