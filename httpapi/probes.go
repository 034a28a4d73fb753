package httpapi

import "net/http"

// NewProbes returns an API for a process that publishes to topic and shows no
// entities, such as the optimizer: /healthz, /readyz and /metrics alone.
// cfg.Store and cfg.NewID are not used.
func NewProbes(cfg Config, topic string) *API {
	a := &API{log: cfg.Log, ready: newReadiness(cfg)}
	a.ready.topic = topic
	mux := http.NewServeMux()
	for path, h := range map[string]http.Handler{
		"/healthz": a.answer(a.health),
		"/readyz":  http.HandlerFunc(a.readyz),
		"/metrics": metricsHandler(cfg.Meter),
	} {
		mux.Handle("GET "+path, h)
		mux.Handle(path, a.wrongMethod(http.MethodGet))
	}
	a.patterns = []string{"/healthz", "/metrics", "/readyz"}
	mux.HandleFunc("/", a.unknownPath)
	a.handler = mux
	return a
}
