package pubsubio

import (
	"testing"
	"testing/synctest"
	"time"
)

// F-FLOW-01: a worker waits for what it holds, however long that takes, and then
// for the acks.
func TestInWork_IsQuietAfterAWhileWithoutMessages(t *testing.T) {
	const settling = 2 * time.Second
	for _, tt := range []struct {
		name string
		held bool
		work func(w *inWork)
		want time.Duration
	}{
		{"nothing is held", false, func(*inWork) {}, settling},
		{"one is settled late", true, func(w *inWork) {
			time.Sleep(time.Hour)
			w.end()
		}, time.Hour + settling},
		{"another comes while the acks are on their way", true, func(w *inWork) {
			w.end()
			time.Sleep(settling / 2)
			w.begin()
			time.Sleep(time.Hour)
			w.end()
		}, settling/2 + time.Hour + settling},
		{"one of two is settled", true, func(w *inWork) {
			w.begin()
			w.end()
			time.Sleep(time.Hour)
			w.end()
		}, time.Hour + settling},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w inWork
				if tt.held {
					w.begin()
				}
				began, quiet := time.Now(), make(chan time.Duration, 1)
				w.whenQuiet(settling, func() { quiet <- time.Since(began) })
				tt.work(&w)
				if got := <-quiet; got != tt.want {
					t.Errorf("quiet after %v, want %v", got, tt.want)
				}
			})
		})
	}
}
