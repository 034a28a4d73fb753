package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHold(t *testing.T) {
	const stale = "head\n<!-- begin generated: a -->\nold\n<!-- end generated: a -->\ntail\n"
	document := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(document, []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	a := map[string]string{"a": "new\n"}
	if err := Hold(document, a, false, "the command"); err == nil || !strings.HasSuffix(err.Error(), "is stale; run the command") {
		t.Errorf("a stale section is %v", err)
	}
	for range 2 { // the second time there is nothing to do
		if err := Hold(document, a, true, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := Hold(document, a, false, ""); err != nil {
		t.Errorf("a fresh section is %v", err)
	}
	text, err := os.ReadFile(document)
	if want := "head\n<!-- begin generated: a -->\n\nnew\n\n<!-- end generated: a -->\ntail\n"; err != nil || string(text) != want {
		t.Errorf("the document is %q (%v)", text, err)
	}
	inYAML := filepath.Join(t.TempDir(), "page.yaml")
	if err := os.WriteFile(inYAML, []byte("k:\n  # begin generated: a\n  old: 1\n  # end generated: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Hold(inYAML, map[string]string{"a": "  new: 1\n"}, true, ""); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(inYAML)
	if want := "k:\n  # begin generated: a\n  new: 1\n  # end generated: a\n"; err != nil || string(text) != want {
		t.Errorf("the document is %q (%v)", text, err)
	}
	for name, sections := range map[string]map[string]string{
		"one too few":  {},
		"one too many": {"a": "", "b": ""},
		"another's":    {"b": ""},
	} {
		if err := Hold(document, sections, true, ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
