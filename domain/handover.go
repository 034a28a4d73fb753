package domain

// HandOver moves a waiting order to another area: one of its depots plans the order from now on.
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
	// AreaRadius is the cycle's area radius in km; see policy.AreasOf.
	AreaRadius float64
	List       []HandOver
}

// MaxHandOvers bounds how often one order is handed over.
const MaxHandOvers = 4
