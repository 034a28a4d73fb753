package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/devca"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// shows are the credentials of a connection with certificates.
func shows(t *testing.T, bearer string, chain ...tls.Certificate) dronelink.Credentials {
	t.Helper()
	c := dronelink.Credentials{Bearer: bearer, TLS: &credentials.TLSInfo{}}
	for _, one := range chain {
		parsed, err := x509.ParseCertificate(one.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		c.TLS.State.PeerCertificates = append(c.TLS.State.PeerCertificates, parsed)
	}
	return c
}

// F-GW-02: of 10,000 forged, expired, revoked and foreign proofs none passes; the true ones do,
// and a drone with two proofs needs both to be its own.
func TestAuthenticator_LetsNoForgeryPass(t *testing.T) {
	t.Parallel()
	clients := emutest.Clients(t)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	now := time.Now()
	ca, err := devca.New(time.Now)
	foreign, failed := devca.New(time.Now)
	old, stale := devca.New(func() time.Time { return now.AddDate(-1, 0, 0) })
	rule, wrong := dronelink.ParseCertificateRule("uri:drone:{drone}")
	if err := errors.Join(err, failed, stale, wrong); err != nil {
		t.Fatal(err)
	}
	signer := identitytest.RSA(t, "k1")
	issuer := identitytest.Start(t, signer)
	everybody := identity.Grant{}
	if err := everybody.UnmarshalText([]byte("*")); err != nil {
		t.Fatal(err)
	}
	tokens, err := identity.New(identity.Config{Issuer: issuer.URL, Audiences: []string{"gateway"}, Requesters: []identity.Grant{everybody}, RequesterClaim: "sub", Log: emutest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	auth := gateway.Authenticator{
		Certificates: &dronelink.Certificates{Roots: ca.Roots(), Rule: rule}, Now: time.Now, Tokens: tokens,
		Keys: apikeys.New(apikeys.Config{Store: store, Now: time.Now, Log: emutest.Log(t)}),
	}
	key := func(role domain.KeyRole, subject string, expires time.Duration, revoked bool) string {
		text := apikeys.NewText()
		k := domain.APIKey{Hash: apikeys.Hash(text), Role: role, Subject: subject, CreatedAt: now.Add(-2 * time.Hour), CreatedBy: "ann", Why: "test", ExpiresAt: now.Add(expires)}
		if err := store.CreateKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if revoked {
			if _, err := store.RevokeKey(t.Context(), k.Hash, "ann", "stolen"); err != nil {
				t.Fatal(err)
			}
		}
		return text
	}
	client := func(ca *devca.CA, uri string) tls.Certificate {
		c, err := ca.Client(uri)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	token := func(k identitytest.Key, change func(identitytest.Claims)) string {
		claims := identitytest.Claims{"aud": "gateway", "sub": "D-1"}
		if change != nil {
			change(claims)
		}
		return issuer.Token(t, k, now, claims)
	}
	mine := client(ca, "drone:D-1")
	good := key(domain.KeyDrone, "D-1", time.Hour, false)
	for name, c := range map[string]dronelink.Credentials{
		"certificate": shows(t, "", mine), "key": shows(t, good), "token": shows(t, token(signer, nil)), "both": shows(t, good, mine),
	} {
		if who, err := auth.Authenticate(t.Context(), c); err != nil || who.Drone != "D-1" {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	server, err := ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	forged := map[string]dronelink.Credentials{
		"nothing": {}, "nothing over TLS": shows(t, ""), "of another authority": shows(t, "", client(foreign, "drone:D-1")), "expired": shows(t, "", client(old, "drone:D-1")),
		"a server's": shows(t, "", server), "another name": shows(t, "", client(ca, "pilot:D-1")), "longer name": shows(t, "", client(ca, "x-drone:D-1")),
		"nobody": shows(t, "", client(ca, "drone:")), "path": shows(t, "", client(ca, "drone:a/b")), "own root": shows(t, "", client(foreign, "drone:D-1"), mine),
		"expired key": shows(t, key(domain.KeyDrone, "D-1", -time.Hour, false)), "revoked key": shows(t, key(domain.KeyDrone, "D-1", time.Hour, true)),
		"operator's key": shows(t, key(domain.KeyOperator, "", time.Hour, false)), "requester's key": shows(t, key(domain.KeyRequester, "D-1", time.Hour, false)),
		"another's key": shows(t, key(domain.KeyDrone, "D-2", time.Hour, false), mine), "key, foreign certificate": shows(t, good, client(foreign, "drone:D-1")),
		"token of another audience": shows(t, token(signer, func(c identitytest.Claims) { c["aud"] = "console" })),
		"token of another key":      shows(t, token(identitytest.RSA(t, "k1"), nil)),
		"expired token":             shows(t, token(signer, func(c identitytest.Claims) { c["exp"] = now.Add(-time.Hour).Unix() })),
		"token of nobody":           shows(t, token(signer, func(c identitytest.Claims) { c["sub"] = "a/b" })),
		"another's token":           shows(t, token(signer, func(c identitytest.Claims) { c["sub"] = "D-2" }), mine),
	}
	passed := 0
	try := func(name string, c dronelink.Credentials) {
		who, err := auth.Authenticate(t.Context(), c)
		if refused, is := errors.AsType[*dronelink.Refusal](err); !is || !refused.Final || refused.Text == "" {
			passed++
			t.Errorf("%s: passes as %+v, %v", name, who, err)
		}
	}
	for name, c := range forged {
		try(name, c)
	}
	n := longtest.Size(t, "forgeries", 400, 10_000)
	whole := token(signer, nil)
	for i := len(forged); i < n; i++ {
		switch i % 4 {
		case 0:
			try("of another authority", shows(t, "", client(foreign, fmt.Sprint("drone:D-", i))))
		case 1:
			try("another name", shows(t, "", client(ca, strings.Repeat("x", 1+i%3)+fmt.Sprint(":drone:D-", i))))
		case 2:
			try("made-up key", shows(t, apikeys.NewText()))
		case 3: // a token with one character changed, but not the last, whose bits may not count
			at := i % (len(whole) - 1)
			other := "A"
			if whole[at] == 'A' {
				other = "B"
			}
			try("changed token", shows(t, whole[:at]+other+whole[at+1:]))
		}
	}
	t.Logf("%d of %d forgeries passed", passed, n)
}
