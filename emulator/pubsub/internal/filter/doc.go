// Package filter parses and evaluates the Pub/Sub subscription filter
// language, https://cloud.google.com/pubsub/docs/subscription-message-filter:
//
//	expression = term { AND term } | term { OR term }
//	term       = [ NOT | "-" ] ( "(" expression ")" | comparison )
//	comparison = attributes ":" key
//	           | attributes "." key ( "=" | "!=" ) string
//	           | hasPrefix "(" attributes "." key "," string ")"
//	key        = letters, digits, "-" and "_" | string
//
// AND and OR do not mix without parentheses, keywords are upper case and values are
// quoted strings. The package must import nothing of the server. Parse fails with
// an error that names the position and what was expected there; Matches never
// fails.
package filter
