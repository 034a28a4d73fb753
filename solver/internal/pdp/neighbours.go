package pdp

import (
	"cmp"
	"slices"
)

// LinkAnchors fills Near: for each anchor the k nearest other anchors by the given metric.
// Ties go to the anchors that follow it in the list, so that each is near some others even
// if more than k anchors share a point.
func (in *Instance) LinkAnchors(anchors []int32, k int, metric func(a, b int32) float64) {
	in.Anchors = anchors
	links := make([]link, 0, len(anchors))
	for i, a := range anchors {
		links = links[:0]
		for offset := 1; offset < len(anchors); offset++ {
			links = append(links, link{int32(offset), metric(a, anchors[(i+offset)%len(anchors)])})
		}
		n := min(k, len(links))
		nearestFirst(links, n)
		near := make([]int32, 0, n+1)
		near = append(near, a)
		for _, l := range links[:n] {
			near = append(near, anchors[(i+int(l.offset))%len(anchors)])
		}
		in.Near[a] = near
	}
}

// link is an anchor at a distance from another one; offset is how many places
// after that one it stands in the list of anchors.
type link struct {
	offset   int32
	distance float64
}

func (x link) before(y link) bool {
	return x.distance < y.distance || x.distance == y.distance && x.offset < y.offset
}

// nearestFirst moves the n nearest links to the front, in order: quickselect
// with the median of three as pivot, then a sort of the front.
func nearestFirst(links []link, n int) {
	for low, high := 0, len(links); high-low > 16 && low < n; {
		a, b, c := links[low], links[(low+high)/2], links[high-1]
		if b.before(a) {
			a, b = b, a
		}
		if c.before(b) {
			if b = c; b.before(a) {
				b = a
			}
		}
		i, j := low, high-1
		for i <= j {
			for links[i].before(b) {
				i++
			}
			for b.before(links[j]) {
				j--
			}
			if i <= j {
				links[i], links[j] = links[j], links[i]
				i++
				j--
			}
		}
		switch { // links[low:j+1] <= b <= links[i:high]
		case n <= j:
			high = j + 1
		case n > i:
			low = i
		default:
			low = high
		}
	}
	slices.SortFunc(links[:min(len(links), n+16)], func(x, y link) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.offset, y.offset))
	})
}
