package console_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

// guarded runs an API where viewers sign in at an issuer.
func guarded(t *testing.T) (url string) {
	t.Helper()
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log, key := slog.New(slog.DiscardHandler), identitytest.EC(t, "k1")
	issuer := identitytest.Start(t, key)
	issuer.SignIn(identitytest.Browsers{Redirect: listener.URL() + identity.CallbackPath, IDToken: func(nonce string) string {
		return issuer.Token(t, key, time.Now(), identitytest.Claims{"aud": identitytest.ClientID, "nonce": nonce, "email": "ann@example.org", "email_verified": true})
	}})
	var everybody identity.Grant
	if err := everybody.UnmarshalText([]byte("*")); err != nil {
		t.Fatal(err)
	}
	verifier, err := identity.New(identity.Config{Issuer: issuer.URL, Audiences: []string{"tokens"}, Viewers: []identity.Grant{everybody}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	signIn, err := identity.NewSignIn(verifier, identity.SignInConfig{
		ClientID: identitytest.ClientID, ClientSecret: identitytest.ClientSecret, PublicURL: listener.URL(), Scopes: []string{"openid"},
	})
	if err != nil {
		t.Fatal(err)
	}
	clients := emutest.Clients(t)
	locks, err := clients.Locks(simclock.Real(), log)
	if err != nil {
		t.Fatal(err)
	}
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	feed := live.New(live.Config{Store: store, PubSub: clients.PubSub, Locks: locks, Now: time.Now, NewID: uuid.NewString, Log: log})
	api := httpapi.New(httpapi.Config{
		Store: store, Locks: locks, PubSub: clients.PubSub, Meter: clients.Meter, NewID: uuid.NewString, Feed: feed, Log: log,
		Access: httpapi.Access{Verifier: verifier, SignIn: signIn},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := listener.Serve(ctx, context.Background(), api); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		serving.Wait()
		feed.Close(context.Background())
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return listener.URL()
}

// F-API-06: a person signs in with a browser and sees the fleet; no script can read the
// session.
func TestConsole_SignsIn(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	url := guarded(t)
	do(t, ctx, chromedp.Navigate(url))
	await(t, ctx, `fetch("/api/v1/session").then((r) => r.status === 401)`)
	do(t, ctx, chromedp.Navigate(url+"/signin"))
	await(t, ctx, `document.getElementById("state")?.textContent === "Live"`)
	await(t, ctx, `fetch("/api/v1/session").then((r) => r.json()).then((s) => s.name === "ann@example.org" && s.method === "session" && s.verbs.length === 0)`)
	if at := js[string](t, ctx, `location.href`); at != url+"/" {
		t.Errorf("after signing in the browser is at %s", at)
	}
	if seen := js[string](t, ctx, `document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`); strings.Contains(seen, "dronefleet") || strings.Contains(seen, "eyJ") {
		t.Errorf("scripts can read %s", seen)
	}
	await(t, ctx, `fetch("/api/v1/orders/O1/hold", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"reason": "x"}'}).then((r) => r.status === 403)`)
	await(t, ctx, `!document.getElementById("signout").hidden`)
	js[any](t, ctx, `document.getElementById("signout").click()`)
	await(t, ctx, `document.getElementById("signin")?.hidden === false && document.getElementById("signout").hidden`)
	await(t, ctx, `fetch("/api/v1/session").then((r) => r.status === 401)`)
}
