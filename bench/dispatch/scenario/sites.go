package scenario

// site is longitude and latitude in degrees.
type site struct{ lon, lat float64 }

// Hospitals of Greater Accra: public repository
// geosolutions1-dev/health_facilities, layers/GTAccraHealthFacilities_1.js.
var accra = []site{
	{-0.18546, 5.63247}, {-0.198676, 5.561618}, {-0.026977, 5.626471}, {0.0348825, 5.7286672},
	{-0.112525, 5.573375}, {-0.115558, 5.724311}, {-0.229378, 5.541217}, {-0.185049, 5.586894},
}

// Hospitals in and around Berlin: © OpenStreetMap contributors, ODbL, from the
// public repository franksh/kira-dashboard, src/app/hospitals.json.
var berlin = []site{
	{13.3703633, 52.5554121}, {13.3752301, 52.557367}, {13.3425566, 52.5421508}, {13.3076971, 52.5897621},
	{13.3967186, 52.5260055}, {13.7712362, 52.4528016}, {13.7729786, 52.4547213}, {13.3713474, 52.5356575},
	{13.1560713, 52.5625388}, {13.16295, 52.4621451}, {13.1906828, 52.6556985}, {13.2541807, 52.4227073},
	{13.2398672, 52.4445018}, {13.595722, 52.4401091}, {13.3465511, 52.4620791}, {13.4297195, 52.5406155},
	{13.4954295, 52.5133023}, {13.3902674, 52.4590154},
}
