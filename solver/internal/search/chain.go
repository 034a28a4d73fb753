package search

// Chain is one independent search with its own random stream.
type Chain struct {
	state
	rng  rng
	Best *Solution
}

// NewChain returns a chain whose solution leaves every request out.
func NewChain(in *Instance, seed uint64) *Chain {
	c := &Chain{state: *newState(in), rng: newRng(seed), Best: NewSolution(in)}
	return c
}

// Construct inserts the bank's requests, in the given order, each at its
// cheapest place.
func (c *Chain) Construct(order []int32) {
	c.begin()
	for _, r := range order {
		if c.bankIndex[r] >= 0 {
			c.placeCheapest(r, 0)
		}
	}
	c.commit()
	c.keep()
}

// keep copies the current solution to Best if it is better.
func (c *Chain) keep() bool {
	if c.bankValue > c.Best.BankValue || c.bankValue == c.Best.BankValue && c.cost >= c.Best.Cost-1e-7 {
		return false
	}
	c.capture(c.Best)
	return true
}
