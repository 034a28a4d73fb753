package domain

import "math"

// Position is a WGS 84 point in degrees.
type Position struct {
	Lat float64 // [-90, 90]
	Lon float64 // [-180, 180]
}

// earthRadiusMetres is the mean radius R1 of IUGG (2 a + b) / 3, rounded.
const earthRadiusMetres = 6_371_000

// DistanceMetres is the great-circle distance by the haversine formula.
func (p Position) DistanceMetres(q Position) float64 {
	const rad = math.Pi / 180
	dLat, dLon := (q.Lat-p.Lat)*rad, (q.Lon-p.Lon)*rad
	halfLat, halfLon := math.Sin(dLat/2), math.Sin(dLon/2)
	h := halfLat*halfLat + math.Cos(p.Lat*rad)*math.Cos(q.Lat*rad)*(halfLon*halfLon)
	return 2 * earthRadiusMetres * math.Asin(math.Min(1, math.Sqrt(h)))
}

// Towards is the point reached from p after flying metres in a straight line
// to q, across the antimeridian if that is shorter; q itself if that is nearer. It
// interpolates degrees, which is exact enough at the few dozen kilometres a drone flies.
func (p Position) Towards(q Position, metres float64) Position {
	whole := p.DistanceMetres(q)
	if whole <= metres || whole == 0 {
		return q
	}
	f := metres / whole
	lon := p.Lon + math.Remainder(q.Lon-p.Lon, 360)*f
	if math.Abs(lon) > 180 {
		lon = math.Remainder(lon, 360)
	}
	return Position{Lat: p.Lat + (q.Lat-p.Lat)*f, Lon: lon}
}
