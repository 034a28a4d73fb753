package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// Authenticator finds out which drone a connection belongs to. What is nil is not accepted. It
// is a dronelink.Authenticator.
type Authenticator struct {
	Certificates *dronelink.Certificates
	// Keys checks API keys; those of drones count.
	Keys Keys
	// Tokens verifies tokens of an issuer. They name the drone as others name a requester: the
	// role is identity.Requester, and its claim holds the drone's id.
	Tokens *identity.Verifier
	Now    func() time.Time
	// Meter counts connections that are refused; nil for none.
	Meter *meter.Link
}

// Keys checks API keys. apikeys.Checker is one.
type Keys interface {
	Check(ctx context.Context, text string) (domain.APIKey, error)
	Recheck(ctx context.Context, k domain.APIKey) error
}

// Authenticate implements dronelink.Authenticator.
func (a Authenticator) Authenticate(ctx context.Context, c dronelink.Credentials) (dronelink.Identity, error) {
	who, err := a.identify(ctx, c)
	if refused, is := errors.AsType[*dronelink.Refusal](err); is && a.Meter != nil {
		a.Meter.TurnedAway(string(refused.Reason))
	}
	return who, err
}

// identify finds out who connects. A connection that shows a certificate and a token must be of
// the same drone by both.
func (a Authenticator) identify(ctx context.Context, c dronelink.Credentials) (dronelink.Identity, error) {
	if c.Bearer == "" && a.Certificates == nil {
		return dronelink.Identity{}, unauthenticated(`no token; send "authorization: Bearer" and the drone's token`)
	}
	certified := c.TLS != nil && len(c.TLS.State.PeerCertificates) > 0
	if c.Bearer == "" {
		return a.Certificates.Authenticate(c, a.Now())
	}
	who, err := a.bearer(ctx, c.Bearer)
	if err != nil || !certified || a.Certificates == nil {
		return who, err
	}
	other, err := a.Certificates.Authenticate(c, a.Now())
	switch {
	case err != nil:
		return dronelink.Identity{}, err
	case other.Drone != who.Drone:
		return dronelink.Identity{}, mismatch("the certificate's drone", other.Drone, who.Drone)
	case other.Until.Before(who.Until) || who.Until.IsZero():
		who.Until = other.Until
	}
	return who, nil
}

// bearer finds out whose token it is.
func (a Authenticator) bearer(ctx context.Context, token string) (dronelink.Identity, error) {
	if a.Keys != nil && strings.HasPrefix(token, apikeys.Prefix) {
		return a.key(ctx, token)
	}
	if a.Tokens == nil {
		return dronelink.Identity{}, unauthenticated("tokens of an issuer are not accepted here; connect with the drone's certificate or API key")
	}
	caller, err := a.Tokens.Identify(ctx, token)
	if _, is := errors.AsType[*identity.UnavailableError](err); is {
		return dronelink.Identity{}, &dronelink.Refusal{Reason: dronelink.Unavailable, Final: true, RetryAfter: spread(unavailableRetry), Text: "the token cannot be verified now: " + err.Error()}
	}
	switch {
	case err != nil:
		return dronelink.Identity{}, unauthenticated(err.Error())
	case !caller.May(identity.Requester):
		return dronelink.Identity{}, unauthenticated("the token names no drone; ask its issuer for one with the claim that --oidc-drone-claim names")
	}
	return dronelink.Identity{Drone: domain.DroneID(caller.Requester), Method: string(identity.Token), Until: caller.Until}, nil
}

// key finds out whose API key it is.
func (a Authenticator) key(ctx context.Context, text string) (dronelink.Identity, error) {
	k, err := a.Keys.Check(ctx, text)
	if _, invalid := errors.AsType[*apikeys.InvalidError](err); invalid {
		return dronelink.Identity{}, unauthenticated(err.Error())
	}
	if err != nil {
		return dronelink.Identity{}, &dronelink.Refusal{Reason: dronelink.Unavailable, Final: true, RetryAfter: spread(unavailableRetry), Text: err.Error()}
	}
	if k.Role != domain.KeyDrone {
		return dronelink.Identity{}, unauthenticated(fmt.Sprintf("the API key has the role %s, not %s; ask for a drone's (statemanager keys create)", k.Role, domain.KeyDrone))
	}
	holds := func(ctx context.Context) error {
		err := a.Keys.Recheck(ctx, k)
		if _, invalid := errors.AsType[*apikeys.InvalidError](err); invalid {
			return &dronelink.Refusal{Reason: dronelink.Revoked, Final: true, Text: err.Error()}
		}
		return nil // it counts, or that cannot be found out now
	}
	return dronelink.Identity{Drone: domain.DroneID(k.Subject), Method: "key", Until: k.ExpiresAt, Holds: holds}, nil
}

func unauthenticated(text string) *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.Unauthenticated, Final: true, Text: text}
}
