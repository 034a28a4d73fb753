package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	vkit "cloud.google.com/go/firestore/apiv1"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/emutest"
)

const guide = "../docs/deploy.md"

// The code reads the documents of the guide as depots and warehouses.
func TestGuide_DepotAndWarehouseAreRead(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)`(depot|warehouse)\\.json`:\n\n```json\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("the guide shows %d documents, want a depot and a warehouse", len(blocks))
	}
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	conn, err := grpc.NewClient(hosts.FirestoreHost, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := vkit.NewClient(t.Context(), option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, block := range blocks {
		collection := map[string]string{"depot": firestoretx.Depots, "warehouse": firestoretx.Warehouses}[block[1]]
		doc := &firestorepb.Document{}
		if err := protojson.Unmarshal([]byte(block[2]), doc); err != nil {
			t.Fatalf("%s.json: %v", block[1], err)
		}
		doc.Name = clients.Firestore.Doc(collection + "/ONE").Path
		// What PATCH does: https://firebase.google.com/docs/firestore/reference/rest/v1/projects.databases.documents/patch
		if _, err := raw.UpdateDocument(t.Context(), &firestorepb.UpdateDocumentRequest{Document: doc}); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := firestoretx.New(clients.Firestore, firestoretx.Config{}).Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: domain.DepotID("ONE")})
	if err != nil {
		t.Fatal(err)
	}
	if d := snap.Depot; d.Name == "" || d.Position == (domain.Position{}) || d.Capacity == 0 || d.ChargingSlots == 0 {
		t.Errorf("the depot is read as %+v", d)
	}
	if len(snap.Warehouses) != 1 {
		t.Fatalf("%d warehouses are read", len(snap.Warehouses))
	}
	if w := snap.Warehouses[0]; w.Name == "" || w.Position == (domain.Position{}) || len(w.ProductTypes) != 2 || !w.ColdStorage {
		t.Errorf("the warehouse is read as %+v", w)
	}
}

var (
	commandInGuide = regexp.MustCompile("`((?:statemanager|optimizer) [^`]+)`")
	linkInGuide    = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	variableInText = regexp.MustCompile(`\b(?:DRONEFLEET|OTEL)_[A-Z_]+\b`)
	moduleVariable = regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`")
)

// The guide names only commands, files, environment variables and Terraform variables that
// exist.
func TestGuide_NamesWhatExists(t *testing.T) {
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	text, w := string(content), newWorld(t)
	for _, m := range commandInGuide.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		if out, err := exec.Command(filepath.Join(binaries(t), words[0]), append(words[1:], "--help")...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", m[1], err, out)
		}
	}
	for _, m := range linkInGuide.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(guide), m[1])); err != nil {
			t.Error(err)
		}
	}
	for _, name := range variableInText.FindAllString(text, -1) {
		if !w.settings["statemanager serve"][name] {
			t.Errorf("no variable %s", name)
		}
	}
	module := string(deployFiles(t)["terraform/variables.tf"])
	for _, m := range moduleVariable.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(module, `variable "`+m[1]+`"`) {
			t.Errorf("Terraform's module has no variable %s", m[1])
		}
	}
}
