package conformance

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

// official is shared by all tests, because starting it takes seconds.
var official officialEmulator

func TestMain(m *testing.M) {
	flag.Parse()
	chooseSeed()
	code := m.Run()
	official.stop()
	if err := leaktest.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// chooseSeed sets the seed and the number of random sequences, unless the command line
// does, and prints them.
func chooseSeed() {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	set := func(name, value string) {
		if given[name] {
			return
		}
		if err := flag.Set(name, value); err != nil {
			panic(fmt.Sprintf("conformance: set -%s: %v", name, err))
		}
	}
	set("rapid.checks", strconv.Itoa(DefaultSequences))
	set("rapid.nofailfile", "true")
	set("rapid.shrinktime", "20s")
	set("rapid.seed", strconv.Itoa(DefaultSeed))
	fmt.Printf("conformance: random sequences use -rapid.seed=%s -rapid.checks=%s\n",
		flag.Lookup("rapid.seed").Value, flag.Lookup("rapid.checks").Value)
}
