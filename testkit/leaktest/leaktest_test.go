package leaktest

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { Main(m) }

// A goroutine that ends after goleak would have given up is no leak. One that never ends is.
func TestFind_WaitsForGoroutinesThatEnd(t *testing.T) {
	others := goleak.IgnoreCurrent()
	end := make(chan struct{})
	go func() { <-end }()
	if err := find(time.Now(), []goleak.Option{others}); err == nil || !strings.Contains(err.Error(), "leaktest") {
		t.Errorf("a goroutine that stays: %v", err)
	}
	time.AfterFunc(time.Second, func() { close(end) })
	if err := Find(others); err != nil {
		t.Error(err)
	}
}
