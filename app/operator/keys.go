package operator

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// keyCollection is the name of keys in cursors.
const keyCollection = "keys"

// KeyUse is what an API key is for.
type KeyUse struct {
	Role domain.KeyRole
	// Requester or Drone is for whom a key of that role speaks.
	Requester, Drone string
	ExpiresAt        time.Time
}

// Check returns a *FieldError if no key can have this use from now on.
func (u KeyUse) Check(now time.Time) error {
	if err := ofField("role", domain.CheckKeyRole(u.Role)); err != nil {
		return err
	}
	for _, s := range []struct {
		field, id string
		role      domain.KeyRole
	}{{"requester", u.Requester, domain.KeyRequester}, {"drone", u.Drone, domain.KeyDrone}} {
		switch {
		case u.Role != s.role && s.id != "":
			return ofField(s.field, fmt.Errorf("is for keys of the role %s; leave it out, or set that role", s.role))
		case u.Role == s.role:
			if err := domain.CheckID(s.id); err != nil {
				return ofField(s.field, fmt.Errorf("%q %w", s.id, err))
			}
		}
	}
	return ofField("expires", domain.CheckKeyLifetime(u.ExpiresAt, now))
}

// CreateKey makes an API key and records it with its maker. The text is returned here and kept
// nowhere.
//
// Cost: 1 RPC, 1 write.
func (c Commands) CreateKey(ctx context.Context, use KeyUse, reason string) (text string, k domain.APIKey, err error) {
	now := c.Store.Now()
	if err := use.Check(now); err != nil {
		return "", k, err
	}
	if err := c.checkAudit(reason); err != nil {
		return "", k, err
	}
	text = apikeys.NewText()
	k = domain.APIKey{
		Hash: apikeys.Hash(text), Role: use.Role, Subject: use.Requester + use.Drone, // at most one of them is set
		CreatedAt: now, CreatedBy: c.By, Why: oneLine(reason), ExpiresAt: use.ExpiresAt,
	}
	if err := c.Store.CreateKey(ctx, k); err != nil {
		return "", k, err
	}
	return text, k, nil
}

// RevokeKey ends an API key, named by its id or, for one that has leaked, by its text. A revoked
// key stays as it is.
//
// Cost: 3 RPCs, 1 read, 1 write.
func (c Commands) RevokeKey(ctx context.Context, id, reason string) (Changed[domain.APIKey], error) {
	if apikeys.Is(id) {
		id = apikeys.Hash(id)
	}
	if err := ofField("id", domain.CheckKeyHash(id)); err != nil {
		return Changed[domain.APIKey]{}, err
	}
	if err := c.checkAudit(reason); err != nil {
		return Changed[domain.APIKey]{}, err
	}
	k, err := c.Store.RevokeKey(ctx, id, c.By, oneLine(reason))
	refused, _ := policy.ReasonOf(err)
	already := refused == policy.ReasonUnchanged
	if err != nil && !already {
		return Changed[domain.APIKey]{}, about("key", id, err)
	}
	return Changed[domain.APIKey]{Now: k, Already: already}, nil
}

// CreateKey makes an API key and prints its text alone, so that a script can take it. The rest goes
// to notes.
func (d *Desk) CreateKey(ctx context.Context, use KeyUse, reason string, notes io.Writer) error {
	text, k, err := d.Commands.CreateKey(ctx, use, reason)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.printJSON(struct {
			Key string `json:"key"`
			entity.APIKey
		}{text, d.keyForm(k)})
	}
	fmt.Fprintf(notes, "Made %s (role %s), which expires %s. Keep the key now: it is not shown again. Its id is %s.\n", k.Name(), k.Role, k.ExpiresAt.UTC().Format(time.RFC3339), k.Hash)
	d.say("%s", text)
	return nil
}

// RevokeKey ends an API key and prints it; see Commands.
func (d *Desk) RevokeKey(ctx context.Context, id, reason string) error {
	changed, err := d.Commands.RevokeKey(ctx, id, reason)
	if err != nil {
		return err
	}
	k := changed.Now
	if d.JSON {
		return d.printJSON(d.keyForm(k))
	}
	d.say("%s%s (role %s) was revoked by %s at %s UTC: %s. Every process refuses it within %s.", changed.already(), k.Name(), k.Role, k.RevokedBy, stamp(k.RevokedAt), k.RevokedWhy, apikeys.CacheFor)
	return nil
}

// ListKeys prints one page of API keys.
func (d *Desk) ListKeys(ctx context.Context, page firestoretx.Page) error {
	l, err := d.Store.ListKeys(ctx, page)
	if err != nil {
		return err
	}
	return printPage(d, keyCollection, "There are no API keys.", l, d.keyForm,
		[]string{"ID", "ROLE", "FOR", "STATE", "EXPIRES (UTC)", "LAST USED", "MADE BY", "WHY"}, func(k domain.APIKey) []string {
			state := "valid"
			switch {
			case !k.RevokedAt.IsZero():
				state = "revoked"
			case k.Ended(d.Now()) != "":
				state = "expired"
			}
			return []string{k.Hash, string(k.Role), k.Subject, state, stamp(k.ExpiresAt), d.ago(k.LastUsedAt), k.CreatedBy, k.Why}
		})
}

func (d *Desk) keyForm(k domain.APIKey) entity.APIKey { return entity.OfAPIKey(k, d.Now()) }
