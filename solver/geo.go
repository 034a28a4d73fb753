package solver

import "math"

// earthRadius is the mean radius in metres.
const earthRadius = 6371000.0

// vec is a point on the unit sphere. The distance of two costs a few
// multiplications and a square root, and is exact at the poles and across the
// antimeridian.
type vec struct{ x, y, z float64 }

func toVec(l Location) vec {
	const rad = math.Pi / 180
	lat, lon := l.Lat*rad, l.Lon*rad
	c := math.Cos(lat)
	return vec{c * math.Cos(lon), c * math.Sin(lon), math.Sin(lat)}
}

// metres is the great-circle distance 2R asin(chord/2), which equals the haversine
// formula.
func (a vec) metres(b vec) float64 {
	dx, dy, dz := a.x-b.x, a.y-b.y, a.z-b.z
	half := math.Sqrt(dx*dx+dy*dy+dz*dz) / 2
	if half < 0.02 { // below 255 km the Taylor series is exact to the last bits
		s := half * half
		return 2 * earthRadius * half * (1 + s*(1.0/6+s*(3.0/40+s*(15.0/336+s*(105.0/3456)))))
	}
	return 2 * earthRadius * math.Asin(math.Min(1, half))
}

// morton returns the Morton code of a point: points near each other mostly have
// codes near each other.
func (a vec) morton() uint64 {
	return spread(a.x) | spread(a.y)<<1 | spread(a.z)<<2
}

// spread maps a number of [-1,1] to 21 bits with two free bits between any two.
func spread(x float64) uint64 {
	n := uint64((x + 1) / 2 * (1<<21 - 1))
	n = (n | n<<32) & 0x1f00000000ffff
	n = (n | n<<16) & 0x1f0000ff0000ff
	n = (n | n<<8) & 0x100f00f00f00f00f
	n = (n | n<<4) & 0x10c30c30c30c30c3
	return (n | n<<2) & 0x1249249249249249
}
