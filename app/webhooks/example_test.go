package webhooks_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
)

// F-INT-07: examples/webhook.py, which has none of our code, takes what the sender sends, once, and
// nothing that is forged or old.
func TestExample_TakesGenuineMessagesOnly(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	secret := webhooks.NewSecret()
	program := exec.Command(python, "../../examples/webhook.py", "0")
	program.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret)
	program.Stderr = t.Output()
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	address := strings.TrimPrefix(lines.Text(), "listening on ")

	f := newFleet(t)
	reg := hook("W", address)
	reg.Secret = secret
	f.apply(reg)
	f.send(f.config(f.clients))
	f.do(f.store.IngestOrder(t.Context(), request("O1", "H1"), time.Now()))
	if lines.Scan(); lines.Text() != "order.accepted O1 " {
		t.Fatalf("it prints %q", lines.Text())
	}
	client := webhooks.NewClient(nil)
	defer client.Close()
	secrets := domain.WebhookSecrets{Current: secret}
	send := func(s domain.WebhookSecrets, id string, at time.Time) error {
		return client.Send(t.Context(), address, s, id, at, `{"type":"webhook.test","data":{}}`)
	}
	now := time.Now()
	for what, err := range map[string]error{
		"a forged message":     send(domain.WebhookSecrets{Current: webhooks.NewSecret()}, "forged", now),
		"an old message":       send(secrets, "old", now.Add(-10*time.Minute)),
		"a message of 64 KiB":  client.Send(t.Context(), address, secrets, "large", now, strings.Repeat(" ", webhooks.MaxBody+1)),
		"one without a header": post(address),
	} {
		if err == nil {
			t.Errorf("it takes %s", what)
		}
	}
	for range 2 { // the second is the same message again
		if err := send(secrets, "T1", now); err != nil {
			t.Error(err)
		}
	}
	if err := send(domain.WebhookSecrets{Current: webhooks.NewSecret(), Previous: secret, PreviousUntil: now.Add(time.Hour)}, "T2", now); err != nil {
		t.Errorf("with two signatures: %v", err)
	}
	_ = program.Process.Kill()
	rest, _ := io.ReadAll(out)
	for lines.Scan() {
		rest = append(rest, lines.Text()+"\n"...)
	}
	if n := strings.Count(string(rest), "webhook.test -"); n != 2 {
		t.Errorf("it prints %q", rest)
	}
}

func post(address string) error {
	answer, err := http.Post(address, "application/json", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return http.ErrNotSupported
	}
	return nil
}
