package placefile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
)

// F-INT-07: YAML and CSV describe the same webhooks.
func TestWebhooks_ReadFromYAMLAndCSV(t *testing.T) {
	want := []domain.WebhookRegistration{
		{Webhook: domain.Webhook{ID: "W1", URL: "https://a.example/x?y=1", Kinds: []domain.WebhookKind{"order.delivered", "order.waiting"}, RequesterID: "H1"}},
		{Webhook: domain.Webhook{ID: "W2", URL: "http://localhost:9000"}, Secret: "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
	}
	for name, text := range map[string]string{
		"w.yaml": "webhooks:\n  - {id: W1, url: 'https://a.example/x?y=1', kinds: [order.delivered, order.waiting], requesterId: H1}\n" +
			"  - {id: W2, url: 'http://localhost:9000', secret: whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}\n",
		"w.csv": "id,url,kinds,requesterId,secret\nW1,https://a.example/x?y=1,order.delivered; order.waiting,H1,\nW2,http://localhost:9000,,,whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
	} {
		got, err := placefile.Webhooks(name, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// F-INT-07: every problem of a file of webhooks is named with its line, and no secret is shown.
func TestWebhooks_EveryProblemIsNamed(t *testing.T) {
	const key = "c2VjcmV0"
	for fields, want := range map[string]string{
		"id: W":                            "line 2: url is missing; give an address such as https://hospital.example/hooks",
		"url: 'https://a.example'":         "line 2: id is missing",
		"id: W, url: 'ftp://a.b'":          "url is not https; give https://, or http:// to this machine",
		"id: W, url: 'http://a.b'":         "url is not https",
		"id: W, url: 'https://'":           "url is not an address",
		"id: W, url: 'https:a.b'":          "url is not an address",
		"id: W, url: '://'":                "url is not an address",
		"id: W, url: 'https://a.b#'":       "",
		"id: W, url: 'https://a.b#c'":      "url has a fragment",
		"id: W, url: 'https://ann:pw@a.b'": "url has a user name or a password",
		"id: W, url: 'https://a.b/" + strings.Repeat("x", 2048) + "'":     "url has 2060 bytes; give at most 2048",
		"id: W, url: 'https://a.b', kinds: order.delivered":               "kinds is order.delivered; give a list such as [order.delivered]",
		"id: W, url: 'https://a.b', kinds: []":                            "kinds is []; give a list",
		"id: W, url: 'https://a.b', kinds: [order.lost]":                  `kinds has "order.lost"; give some of order.accepted, order.assigned`,
		"id: W, url: 'https://a.b', kinds: [order.waiting,order.waiting]": "kinds has order.waiting twice; give it once",
		"id: W, url: 'https://a.b', secret: whsec_" + key:                 "secret is not a secret; give whsec_ and 24 to 64 bytes in base64",
		"id: W, url: 'https://a.b', secret: " + key:                       "secret is not a secret",
		"id: W, url: 'https://a.b', requesterId: 'a/b'":                   "requesterId",
		"id: W, url: 'https://a.b', knids: [order.waiting]":               `"knids" is not a field`,
	} {
		_, err := placefile.Webhooks("w.yaml", []byte("webhooks:\n  - {"+fields+"}\n"))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), key)) {
			t.Errorf("{%s}: %v, want %q", fields, err, want)
		}
	}
}
