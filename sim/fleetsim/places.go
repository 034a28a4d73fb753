package fleetsim

import "github.com/dronefleet/dronefleet/domain"

// Hospital is a place that orders and receives parcels.
type Hospital struct {
	ID       string
	Name     string
	Position domain.Position
}

// The depot and warehouses of the reference fleet.
var (
	parisDepot = domain.Depot{
		ID: "DEPOT-PARIS-01", Name: "Paris Main Hub",
		Position: domain.Position{Lat: 48.8566, Lon: 2.3522},
	}
	warehouseNorth = domain.Warehouse{
		ID: "WH-NORTH", Name: "Warehouse North",
		Position:     domain.Position{Lat: 48.90, Lon: 2.35},
		ProductTypes: []string{"BLOOD", "MEDICINE", "VACCINE"},
		ColdStorage:  true,
	}
	warehouseSouth = domain.Warehouse{
		ID: "WH-SOUTH", Name: "Warehouse South",
		Position:     domain.Position{Lat: 48.80, Lon: 2.35},
		ProductTypes: []string{"MEDICINE", "MEDICAL_DEVICE"},
	}
)

// hospitals of Paris and its inner suburbs. Positions are the coordinates given
// by Wikipedia's article on each hospital, to the arc second (fr.wikipedia.org;
// for Avicenne en.wikipedia.org, "Avicenne Hospital"; for the maternity of
// Port-Royal that on its site, "Abbaye de Port-Royal de Paris").
var hospitals = []Hospital{
	{"HOSP-AMBROISE-PARE", "Hôpital Ambroise-Paré", degrees(48, 50, 57, 2, 14, 8)},
	{"HOSP-AVICENNE", "Hôpital Avicenne", domain.Position{Lat: 48.9144, Lon: 2.4239}},
	{"HOSP-BEAUJON", "Hôpital Beaujon", degrees(48, 54, 30, 2, 18, 37)},
	{"HOSP-BEGIN", "Hôpital d'instruction des armées Bégin", degrees(48, 50, 37, 2, 25, 36)},
	{"HOSP-BICETRE", "Hôpital de Bicêtre", degrees(48, 48, 36, 2, 21, 14)},
	{"HOSP-BICHAT", "Hôpital Bichat-Claude-Bernard", degrees(48, 53, 56, 2, 19, 55)},
	{"HOSP-BROCA", "Hôpital Broca", degrees(48, 50, 4, 2, 20, 49)},
	{"HOSP-COCHIN", "Hôpital Cochin", degrees(48, 50, 13, 2, 20, 25)},
	{"HOSP-FERNAND-WIDAL", "Hôpital Fernand-Widal", degrees(48, 52, 54, 2, 21, 36)},
	{"HOSP-FOND-ROTHSCHILD", "Hôpital Fondation Adolphe de Rothschild", degrees(48, 52, 43, 2, 22, 42)},
	{"HOSP-GUSTAVE-ROUSSY", "Gustave Roussy", degrees(48, 47, 41, 2, 20, 55)},
	{"HOSP-HENRI-MONDOR", "Hôpital Henri-Mondor", degrees(48, 47, 46, 2, 27, 12)},
	{"HOSP-HOTEL-DIEU", "Hôtel-Dieu de Paris", degrees(48, 51, 17, 2, 20, 56)},
	{"HOSP-NECKER", "Hôpital Necker-Enfants malades", degrees(48, 50, 42, 2, 18, 56)},
	{"HOSP-PAUL-BROUSSE", "Hôpital Paul-Brousse", degrees(48, 47, 45, 2, 21, 42)},
	{"HOSP-POMPIDOU", "Hôpital européen Georges-Pompidou", degrees(48, 50, 20, 2, 16, 25)},
	{"HOSP-PORT-ROYAL", "Maternité de Port-Royal", degrees(48, 50, 19, 2, 20, 18)},
	{"HOSP-QUINZE-VINGTS", "Hôpital des Quinze-Vingts", degrees(48, 51, 1, 2, 22, 19)},
	{"HOSP-ROBERT-DEBRE", "Hôpital Robert-Debré", degrees(48, 52, 46, 2, 24, 10)},
	{"HOSP-ROTHSCHILD", "Hôpital Rothschild", degrees(48, 50, 37, 2, 24, 4)},
	{"HOSP-SAINT-ANTOINE", "Hôpital Saint-Antoine", degrees(48, 50, 56, 2, 22, 57)},
	{"HOSP-SAINT-LOUIS", "Hôpital Saint-Louis", degrees(48, 52, 29, 2, 22, 6)},
	{"HOSP-SAINTE-ANNE", "Hôpital Sainte-Anne", degrees(48, 49, 43, 2, 20, 18)},
	{"HOSP-TARNIER", "Hôpital Tarnier", degrees(48, 50, 29, 2, 20, 9)},
	{"HOSP-TENON", "Hôpital Tenon", degrees(48, 51, 58, 2, 24, 6)},
	{"HOSP-TROUSSEAU", "Hôpital Armand-Trousseau", degrees(48, 50, 32, 2, 24, 21)},
}

// degrees converts north and east arc degrees, minutes and seconds.
func degrees(latDeg, latMin, latSec, lonDeg, lonMin, lonSec float64) domain.Position {
	return domain.Position{
		Lat: latDeg + latMin/60 + latSec/3600,
		Lon: lonDeg + lonMin/60 + lonSec/3600,
	}
}
