package api

import (
	_ "embed"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"
)

// AsyncAPI is the document, in YAML.
//
//go:embed asyncapi.yaml
var AsyncAPI []byte

// Rule is one rule for other makers.
type Rule struct {
	ID       string   `yaml:"id" json:"id"`
	Name     string   `yaml:"name" json:"name"`
	Text     string   `yaml:"text" json:"text"`
	Fields   []string `yaml:"fields" json:"-"`
	Refusals []string `yaml:"refusals" json:"-"` // that breaking it can bring
}

// Rules are the rules by who keeps them.
type Rules struct {
	Drones     []Rule `yaml:"drones"`
	Optimizers []Rule `yaml:"optimizers"`
	Hospitals  []Rule `yaml:"hospitals"`
}

// TheRules are the rules of the document. It panics if the document is broken, which a test
// would show.
var TheRules = sync.OnceValue(func() Rules {
	var document struct {
		Rules Rules `yaml:"x-rules"`
	}
	if err := yaml.Unmarshal(AsyncAPI, &document); err != nil {
		panic(fmt.Sprintf("asyncapi.yaml: %v", err))
	}
	return document.Rules
})
