package operator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// F-INT-06: a key is printed once, alone; its document has only its hash; the audit of a person has
// the keys that they made and revoked.
func TestDesk_MakesListsAndRevokesKeys(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	var notes bytes.Buffer
	o.expect(o.says(o.desk.ListKeys(ctx, firestoretx.Page{})), "There are no API keys.")
	use := operator.KeyUse{Role: domain.KeyRequester, Requester: "HOSPITAL-7", ExpiresAt: time.Now().Add(time.Hour)}
	printed := o.says(o.desk.CreateKey(ctx, use, "laboratory", &notes))
	text := strings.TrimSuffix(printed, "\n")
	id := apikeys.Hash(text)
	if len(text) != 47 || !apikeys.Is(text) || strings.ContainsAny(text, " \n") || strings.Contains(notes.String(), text) {
		t.Fatalf("printed %q and noted %q", printed, notes.String())
	}
	o.expect(notes.String(), "Made key "+id[:12]+" of HOSPITAL-7 (role requester), which expires ", "it is not shown again. Its id is "+id)
	doc, err := o.clients.Firestore.Collection(firestoretx.Keys).Doc(id).Get(ctx)
	if err != nil || doc.Data()["createdBy"] != "ann@example.org" || doc.Data()["why"] != "laboratory" || strings.Contains(string(mustJSON(t, doc.Data())), text[4:]) {
		t.Errorf("document %v, %v", doc.Data(), err)
	}
	list := o.says(o.desk.ListKeys(ctx, firestoretx.Page{}))
	o.expect(list, id, "requester", "HOSPITAL-7", "valid", "ann@example.org", "laboratory")

	bob := *o.desk
	bob.By = "bob"
	o.expect(o.says(bob.RevokeKey(ctx, text, "found in a repository")), "key "+id[:12]+" of HOSPITAL-7 (role requester) was revoked by bob at ", ": found in a repository. Every process refuses it within 10s.")
	o.expect(o.says(o.desk.RevokeKey(ctx, id, "again")), "lready", "was revoked by bob", "found in a repository")
	o.expect(o.says(o.desk.ListKeys(ctx, firestoretx.Page{})), id, "revoked")
	o.refused(o.desk.RevokeKey(ctx, apikeys.NewText(), "unknown"), policy.ReasonNotFound)
	o.expect(o.says(o.desk.AuditPerson(ctx, "ann@example.org", time.Time{}, time.Now().Add(time.Minute))), "key "+id[:12]+" of HOSPITAL-7: made for role requester, expires ", "because laboratory")
	o.expect(o.says(o.desk.AuditPerson(ctx, "bob", time.Time{}, time.Now().Add(time.Minute))), "key "+id[:12]+" of HOSPITAL-7: revoked because found in a repository")

	o.desk.JSON = true
	var made struct{ Key, ID, Role, Why string }
	if err := json.Unmarshal([]byte(o.says(o.desk.CreateKey(ctx, operator.KeyUse{Role: domain.KeyViewer, ExpiresAt: use.ExpiresAt}, "screen", &notes))), &made); err != nil || apikeys.Hash(made.Key) != made.ID || made.Why != "screen" {
		t.Errorf("%+v, %v", made, err)
	}
	if text := o.says(o.desk.ListKeys(ctx, firestoretx.Page{})); strings.Contains(text, made.Key) || !strings.Contains(text, `"ended": "it was revoked `) {
		t.Errorf("listed %s", text)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// F-INT-06: what no key can be for is refused by the name of its field.
func TestCommands_RefuseKeysWithoutUse(t *testing.T) {
	o := openOffice(t)
	soon := time.Now().Add(time.Hour)
	for _, c := range []struct {
		use         operator.KeyUse
		field, want string
	}{
		{operator.KeyUse{Role: "admin", ExpiresAt: soon}, "role", `is "admin"; give viewer, operator, requester or drone`},
		{operator.KeyUse{Role: domain.KeyRequester, ExpiresAt: soon}, "requester", "is empty"},
		{operator.KeyUse{Role: domain.KeyRequester, Requester: "a/b", ExpiresAt: soon}, "requester", `"a/b" `},
		{operator.KeyUse{Role: domain.KeyDrone, Requester: "HOSPITAL-7", Drone: "D1", ExpiresAt: soon}, "requester", "is for keys of the role requester; leave it out, or set that role"},
		{operator.KeyUse{Role: domain.KeyViewer, Drone: "D1", ExpiresAt: soon}, "drone", "is for keys of the role drone"},
		{operator.KeyUse{Role: domain.KeyViewer, ExpiresAt: time.Now()}, "expires", "which is past"},
		{operator.KeyUse{Role: domain.KeyViewer, ExpiresAt: soon.AddDate(9, 0, 0)}, "expires", "at most 5 years"},
	} {
		text, _, err := o.desk.Commands.CreateKey(t.Context(), c.use, "why")
		var field *operator.FieldError
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(field.Error(), c.want) || text != "" {
			t.Errorf("%+v: error %v, want %s %s", c.use, err, c.field, c.want)
		}
	}
	keys, err := o.desk.Store.ListKeys(t.Context(), firestoretx.Page{})
	if err != nil || len(keys.Items) > 0 {
		t.Errorf("keys %v, %v", keys.Items, err)
	}
}
