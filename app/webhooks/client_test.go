package webhooks_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

func contains(text, word string) bool { return strings.Contains(text, word) }

// verify checks a message as its receiver does, with openssl and not with our code.
func verify(secret string, header http.Header, body string) error {
	key, err := domain.WebhookKey(secret)
	if err != nil {
		return err
	}
	c := exec.Command("openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", fmt.Sprintf("hexkey:%x", key), "-binary")
	c.Stdin = strings.NewReader(header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + "." + body)
	mac, err := c.Output()
	if err != nil {
		return fmt.Errorf("openssl: %w", err)
	}
	if signature := "v1," + base64.StdEncoding.EncodeToString(mac); !slices.Contains(strings.Fields(header.Get("webhook-signature")), signature) {
		return fmt.Errorf("signatures %s, want %s", header.Get("webhook-signature"), signature)
	}
	return nil
}

// F-INT-07: the example of the Standard Webhooks specification's libraries, by each of two secrets.
func TestSignatures_MatchTheSpecification(t *testing.T) {
	const secret, other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	at := time.Unix(1614265330, 0)
	sign := func(s domain.WebhookSecrets) string {
		t.Helper()
		signed, err := webhooks.Signatures(s, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, `{"test": 2432232314}`)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := sign(domain.WebhookSecrets{Current: secret}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rotated := domain.WebhookSecrets{Current: secret}.Replaced(other, at.Add(-time.Hour))
	if got := strings.Fields(sign(rotated)); len(got) != 2 || got[1] != want {
		t.Errorf("while both secrets are valid: %v", got)
	}
	at = at.Add(domain.WebhookOverlap)
	if got := strings.Fields(sign(rotated)); len(got) != 1 {
		t.Errorf("after the overlap: %v", got)
	}
}

// F-INT-07: each event of an order becomes the message that it should, or none.
func TestKindOf_Table(t *testing.T) {
	for _, row := range []struct {
		from, to domain.OrderStatus
		note     bool
		cause    domain.Cause
		reason   string
		state    map[string]any
		want     domain.WebhookKind
	}{
		{to: "PENDING", want: domain.WebhookAccepted},
		{to: "CANCELLED", want: domain.WebhookCancelled},
		{from: "CANCELLED", to: "PENDING", want: domain.WebhookAccepted},
		{from: "PENDING", to: "ASSIGNED", want: domain.WebhookAssigned},
		{from: "ASSIGNED", to: "IN_DELIVERY", want: domain.WebhookPickedUp},
		{from: "ASSIGNED", to: "DELIVERED", want: domain.WebhookDelivered},
		{from: "IN_DELIVERY", to: "PENDING", want: domain.WebhookWaiting},
		{from: "ASSIGNED", to: "CANCELLED", want: domain.WebhookCancelled},
		{from: "PENDING", to: "PENDING"},
		{from: "PENDING", to: "PENDING", state: map[string]any{"held": true}, want: domain.WebhookWaiting},
		{from: "PENDING", to: "PENDING", state: map[string]any{"late": true}, cause: domain.CauseSweeper, want: domain.WebhookWaiting},
		{from: "PENDING", to: "PENDING", state: map[string]any{"late": true}, cause: domain.CauseOrder},
		{from: "ASSIGNED", to: "ASSIGNED", state: map[string]any{"late": true}, cause: domain.CauseSweeper},
		{from: "DELIVERED", to: "DELIVERED", note: true, reason: string(policy.ReasonAlreadyDelivered), want: domain.WebhookRefused},
		{from: "DELIVERED", to: "DELIVERED", note: true, reason: string(policy.ReasonPickedUpAgain)},
	} {
		e := domain.Event{Entity: domain.EntityOrder, ID: "O1", From: string(row.from), To: string(row.to), Revision: 1, Cause: row.cause, Reason: row.reason, State: row.state}
		if row.note {
			e.Revision = 0
		}
		if kind, tells := webhooks.KindOf(e); tells != (row.want != "") || tells && kind != row.want {
			t.Errorf("%s -> %s %s: %s %t, want %q", row.from, row.to, row.reason, kind, tells, row.want)
		}
	}
	if _, tells := webhooks.KindOf(domain.Event{Entity: domain.EntityDrone, Revision: 1, To: "PENDING"}); tells {
		t.Error("an event of a drone is sent")
	}
}

// F-INT-07: a reason is told if it is a code; other texts can have an address or what somebody wrote.
func TestMessageOf_TellsCodesAndNoTexts(t *testing.T) {
	for reason, want := range map[string]string{
		"ORDER_CONFLICT": `"reason":"ORDER_CONFLICT"`, "cancelled by ward 4": "", "delivery at 48.85,2.35 instead of 48.86,2.36": "",
		policy.WarningText + "no warehouse stocks BLOOD": `"warning":true`,
	} {
		body, err := webhooks.MessageOf(domain.WebhookAccepted, domain.Event{ID: "O1", Reason: reason}, "H1").Body()
		if err != nil || !strings.Contains(body, want) || want == "" && strings.Contains(body, "reason") || strings.Contains(body, "BLOOD") {
			t.Errorf("%q: %s, %v", reason, body, err)
		}
	}
}

// F-INT-07: the longest message that an order can have is far below the limit.
func TestMessage_FitsTheLimit(t *testing.T) {
	long := strings.Repeat("\u0001", 1500)
	body, err := webhooks.MessageOf(domain.WebhookAssigned, domain.Event{ID: long, Reason: long, DroneID: domain.DroneID(long), MissionID: domain.MissionID(long)}, long).Body()
	if err != nil || len(body) > webhooks.MaxBody {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if _, err := (webhooks.Message{Data: webhooks.Data{Reason: strings.Repeat("x", webhooks.MaxBody)}}).Body(); err == nil {
		t.Error("a message over the limit is sent")
	}
}

// F-INT-07: only public addresses and this machine by name are dialled, and what is allowed.
func TestCheckAddress_Table(t *testing.T) {
	allowed := network(t, "10.20.0.0/16")
	for _, row := range []struct {
		address  string
		loopback bool
		ok       bool
	}{
		{"8.8.8.8", false, true}, {"2606:4700:4700::1111", false, true}, {"10.20.3.4", false, true}, {"::ffff:10.20.3.4", false, true},
		{"127.0.0.1", true, true}, {"::1", true, true}, {"8.8.8.8", true, false},
		{"127.0.0.1", false, false}, {"::1", false, false}, {"10.21.0.1", false, false}, {"192.168.1.1", false, false}, {"172.16.0.1", false, false},
		{"169.254.169.254", false, false}, {"fe80::1", false, false}, {"fe80::1%eth0", false, false}, {"fd00::1", false, false}, {"::ffff:127.0.0.1", false, false},
		{"::127.0.0.1", false, false}, {"64:ff9b::a9fe:a9fe", false, false}, {"2002:7f00:1::", false, false}, {"0.0.0.0", false, false}, {"::", false, false},
		{"100.64.0.1", false, false}, {"224.0.0.1", false, false}, {"ff02::1", false, false}, {"255.255.255.255", false, false}, {"198.18.0.1", false, false},
	} {
		if err := webhooks.CheckAddress(row.address, row.loopback, allowed); (err == nil) != row.ok {
			t.Errorf("%s (named as this machine: %t): %v", row.address, row.loopback, err)
		}
	}
	for _, wrong := range []string{"", "10.0.0.0", "10.0.0.1/8", "::ffff:10.0.0.0/104", "*"} {
		if err := new(webhooks.Network).UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("network %q is taken", wrong)
		}
	}
}

func network(t *testing.T, text string) webhooks.Network {
	t.Helper()
	var n webhooks.Network
	if err := n.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return n
}

// F-INT-07: redirects are not followed, private addresses not dialled whatever name leads to them,
// and slow or endless answers are cut off.
func TestClient_BadReceivers(t *testing.T) {
	followed := false
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/elsewhere":
			followed = true
		case "/endless":
			for n := 0; n < 1000; n++ { // 64 MB, unless the caller leaves
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
			t.Error("an endless answer was read")
		case "/hang":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/gone":
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer server.Close()
	defer close(release)
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	name, err := os.Hostname() // of this machine, but not by a name that says so
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.DefaultResolver.LookupHost(t.Context(), name); err != nil {
		t.Logf("%s does not resolve: %v", name, err)
		name = "127.0.0.1.nowhere.invalid"
	}
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	nobody := refused.Addr().String()
	_ = refused.Close()
	client := webhooks.NewClient(nil)
	defer client.Close()
	for _, row := range []struct{ url, want string }{
		{server.URL + "/redirect", "127.0.0.1 answered 307; redirects are not followed, apply the webhook with the address that it leads to"},
		{server.URL + "/gone", "127.0.0.1 answered 410"},
		{server.URL + "/endless", ""},
		{server.URL + "/hang", "127.0.0.1 did not answer within"},
		{"http://" + nobody, "connection refused"},
		{"http://" + name + port, name + ": "},
		{"http://10.1.2.3" + port, "10.1.2.3 is not a public address; if it is meant, allow it with --webhook-networks"},
		{"https://169.254.169.254/computeMetadata", "169.254.169.254 is not a public address"},
		{"https://[::ffff:127.0.0.1]" + port, "HTTP response to HTTPS"}, // named as this machine
	} {
		timeout := time.Minute
		if strings.HasSuffix(row.url, "/hang") {
			timeout = 300 * time.Millisecond
		}
		ctx, end := context.WithTimeout(t.Context(), timeout)
		err := client.Send(ctx, row.url, domain.WebhookSecrets{Current: webhooks.NewSecret()}, "id", time.Now(), "{}")
		end()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.url, err, row.want)
		}
		if u, _ := url.Parse(row.url); err != nil && len(u.Path) > 1 && strings.Contains(err.Error(), u.Path) {
			t.Errorf("the error has the path: %v", err)
		}
	}
	if followed {
		t.Error("a redirect was followed")
	}
	if err := client.Send(t.Context(), server.URL, domain.WebhookSecrets{Current: "whsec_x"}, "id", time.Now(), "{}"); err == nil || errors.Unwrap(err) == nil {
		t.Errorf("with a broken secret: %v", err)
	}
}
