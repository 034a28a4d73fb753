package domain

// HandOver gives an order that waits to another area: one of its depots plans it from now
// on.
type HandOver struct {
	OrderID  OrderID
	From, To DepotID
	Reason   string // why the area of From cannot serve the order in time
}

// HandOvers are what one cycle hands over.
type HandOvers struct {
	CycleID CycleID
	DepotID DepotID // names the area, and its lock issued the fence
	Fence   string
	// AreaRadius is how far apart, in km, the cycle lets the depots of an area be; see
	// policy.AreasOf.
	AreaRadius float64
	List       []HandOver
}

// MaxHandOvers is how often one order is handed over.
const MaxHandOvers = 4
