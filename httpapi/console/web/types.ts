// The entities of the API, as far as the console reads them.

export type Kind = "drone" | "order" | "mission" | "cycle" | "depot" | "warehouse" | "lock" | "alert";

export interface Key { kind: Kind; id: string }
export interface Upsert extends Key { entity: unknown }

export interface Place { lat: number; lon: number }

export interface Drone {
  id: string; status: string; position?: Place; batteryPercentage: number; speedKmh: number; lastUpdate?: string; // without a position it never reported
  shortName?: string; currentMissionId?: string; homeDepotId?: string; chargeRate?: number; parkedSince?: string; grounded?: boolean; groundedReason?: string; emergencyLatched?: boolean; ghostMissionId?: string; linkLostAt?: string;
  registeredAt?: string; registeredBy?: string; unregistered?: boolean; retiredAt?: string; typeId?: string; serialNumber?: string; reportedSerial?: string;
  payloadCapacityKg?: number; maxFlightTimeMinutes?: number; coldBox?: { minCelsius: number; maxCelsius: number };
  flightSeconds?: number; landings?: number; batteryHealth?: number;
  nextDue?: { item: string; at?: string; flightHours?: number; landings?: number }[];
}

export interface Order {
  id: string; status: string; priority?: string; productType?: string; pickupLocation?: Place; deliveryLocation: Place;
  createdAt?: string; deadline?: string; deliveredAt?: string; held: boolean; heldReason?: string; late: boolean;
  requesterId?: string; earliestArrival?: string; earliestDroneId?: string; // if it waits: the soonest that any drone could bring it
  assignedDroneId?: string; assignedMissionId?: string; waiting?: { depotId?: string; reason: string }[];
  pinnedDroneId?: string; forbiddenDroneIds?: string[];
  planningDepotId?: string; planningSince?: string; handedOverBy?: string[]; // whose area plans it, and who did before
}

export interface Waypoint { type: string; position: Place; relatedOrderId?: string; relatedWarehouseId?: string; eta?: string; chargeToPercent?: number; waitUntil?: string }

export interface Mission {
  id: string; droneId: string; orderIds: string[]; route: Waypoint[]; status: string; failureReason?: string;
  recalledAt?: string; unconfirmed?: string; // what the drone was told and has not confirmed: RECALL, AMENDMENT or MISSION
  reachedStops: number; startTime?: string; endTime?: string;
}

export interface Cycle {
  id: string; depotId: string; depotIds?: string[]; outcome: string; detail?: string; fence?: string; holder?: string; drones: number; orders: number;
  missions: number; assigned: number; handedOver?: number; startedAt?: string; endedAt?: string; readMs: number; solveMs: number; publishMs: number;
  unserved: { orderId: string; reason: string }[]; unservedTotal: number;
  withoutOrders?: number; // how many cycles without orders the record stands for
  applied: number; refused: Record<string, number>; // its decisions, refused ones by reason
}

export interface Depot { id: string; name?: string; position: Place; chargingSlots?: number } // without slots: one for each drone
export interface Warehouse { id: string; name?: string; position: Place }

export interface Alert {
  id: string; kind: string; entity: Key; since?: string; text: string; rank: number; urgent: boolean; cause?: string; // rank 1 is the worst; the cause is another alert
  acknowledged: { by: string; at: string; reason: string } | null;
}

export interface Lock { key?: string; depotId?: string }

export interface Entities {
  drone: Drone; order: Order; mission: Mission; cycle: Cycle; depot: Depot; warehouse: Warehouse; lock: Lock; alert: Alert;
}

// Position is a row of a changes event: drone, latitude, longitude, battery, status, measured at in Unix ms.
export type Position = [string, number, number, number, string, number];
