// Package ordering takes orders that come over HTTP. It publishes each to the topic orders, so
// that all orders come into the fleet by one way, and answers once Pub/Sub has it. A repeated
// order changes nothing; an order with a known id and other content is refused.
//
// It must not write to Firestore, which State Managers do, and must not import cmd or httpapi.
package ordering
