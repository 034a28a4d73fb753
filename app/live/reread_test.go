package live

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// The feed ends even if a listener reports any number of changed entities after the reader has
// ended. A listener that blocked would hold up the State Manager's shutdown.
func TestSession_EndsHoweverManyEntitiesAreToBeReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := New(Config{Now: time.Now, NewID: func() string { return "S" }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		s := feed.newSession()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var rereading sync.WaitGroup
		rereading.Go(func() { s.readStale(ctx) })
		rereading.Wait()
		var gone []string
		for i := range 3000 {
			gone = append(gone, fmt.Sprint("O", i))
		}
		newScope(s, nil).sawOrders(firestoretx.Sight[domain.Order]{Gone: gone})
	})
}
