package gateway

import "github.com/dronefleet/dronefleet/domain"

// Misses reports whether a gateway waits for a drone that has left it.
func (g *Gateway) Misses(id domain.DroneID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, away := g.links.away[id]
	return away
}

// Rest waits for what a gateway has begun.
func (g *Gateway) Rest() { g.rest() }
