// View is the part of the world that the map shows: degrees become CSS pixels, at right angles.
export class View {
  readonly north: number;
  readonly south: number;
  readonly west: number;
  readonly east: number;
  private tall: number; // pixels a degree of latitude

  // scale is in pixels a degree of longitude; ratio in pixels of the screen to a CSS pixel.
  constructor(private middleLat: number, private middleLon: number, readonly scale: number, readonly width: number, readonly height: number, readonly ratio: number) {
    this.tall = scale / Math.cos((middleLat * Math.PI) / 180);
    this.north = middleLat + height / 2 / this.tall;
    this.south = middleLat - height / 2 / this.tall;
    this.west = middleLon - width / 2 / scale;
    this.east = middleLon + width / 2 / scale;
  }

  x(lon: number): number { return this.width / 2 + (lon - this.middleLon) * this.scale; }

  y(lat: number): number { return this.height / 2 - (lat - this.middleLat) * this.tall; }

  lon(x: number): number { return this.west + x / this.scale; }

  lat(y: number): number { return this.north - y / this.tall; }

  // metres is how long a pixel is on the ground.
  metres(): number { return 111320 / this.tall; }

  // sees tells whether a part of the world is in sight.
  sees(south: number, west: number, north: number, east: number): boolean {
    return north >= this.south && south <= this.north && east >= this.west && west <= this.east;
  }
}
