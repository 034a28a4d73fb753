package search

import "math"

// rng is xorshift64* (Vigna 2016): one word of state, one generator per chain.
type rng uint64

// newRng mixes the seed so that neighbouring seeds give unrelated streams.
func newRng(seed uint64) rng {
	z := seed + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	if z == 0 {
		z = 1
	}
	return rng(z)
}

func (r *rng) next() uint64 {
	x := uint64(*r)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*r = rng(x)
	return x * 0x2545f4914f6cdd1d
}

// intn returns a number in [0,n); n must be positive.
func (r *rng) intn(n int) int { return int((r.next() >> 32) * uint64(n) >> 32) }

// float returns a number in [0,1).
func (r *rng) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// logFloat returns the logarithm of a number in (0,1].
func (r *rng) logFloat() float64 { return math.Log(1 - r.float()) }

// shuffle brings a list into random order (Fisher-Yates).
func (r *rng) shuffle(list []int32) {
	for i := len(list) - 1; i > 0; i-- {
		j := r.intn(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}
