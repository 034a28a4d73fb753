// The projection of map tiles: rows run from 0 at the top to 1 at the bottom.

export function rowOf(lat: number): number {
  const sin = Math.sin((Math.max(-85.05, Math.min(85.05, lat)) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sin) / (1 - sin)) / (4 * Math.PI);
}

export function latOf(row: number): number { return (Math.atan(Math.sinh(Math.PI * (1 - 2 * row))) * 180) / Math.PI; }
