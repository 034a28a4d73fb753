package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// F-UI-01: people read the State Manager's clock; the browser's may be wrong by hours.
func TestWeb_ReadsTheServersClock(t *testing.T) {
	browsersClock := regexp.MustCompile(`Date\.now|new Date\(\)`)
	sources, err := filepath.Glob("web/*.ts*")
	if err != nil || len(sources) < 20 {
		t.Fatal(len(sources), err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := browsersClock.Find(text); found != nil {
			t.Errorf("%s reads the browser's clock: %s", name, found)
		}
	}
}

// What is not ours is what its page says.
func TestWeb_VendorsWhatIsListed(t *testing.T) {
	root := os.DirFS("web/vendor/preact")
	page, err := fs.ReadFile(root, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^([0-9a-f]{64})  (.+)$`).FindAllStringSubmatch(string(page), -1) {
		listed[row[2]] = row[1]
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "README.md" {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if sum := sha256.Sum256(data); listed[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not the file that README.md lists", name)
		}
		delete(listed, name)
		return err
	})
	if err != nil || len(listed) > 0 {
		t.Errorf("missing: %v, %v", listed, err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimPrefix(strings.SplitN(string(page), "\n", 2)[0], "# ")
	if !strings.Contains(string(doc), "Contains "+version) {
		t.Errorf("the banner in doc.go does not name %s", version)
	}
}
