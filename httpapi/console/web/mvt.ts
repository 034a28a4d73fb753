// A decoder of vector tiles: https://github.com/mapbox/vector-tile-spec/tree/master/2.1

export type Value = string | number | boolean;

// Feature is a point (1), a line (2) or an area (3) of a layer.
export interface Feature {
  type: number;
  has: Record<string, Value>; // those properties that were asked for
  from: number; // where its geometry lies in the tile
  to: number;
}

// Pen is what a geometry is drawn with.
export interface Pen { moveTo(x: number, y: number): void; lineTo(x: number, y: number): void; closePath(): void }

export interface Layer { name: string; extent: number; features: Feature[] }

// Message reads the fields of protocol buffers.
class Message {
  at = 0;
  private view: DataView;

  constructor(private bytes: Uint8Array) { this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length); }

  varint(): number {
    let n = 0;
    for (let factor = 1; ; factor *= 128) {
      const b = this.bytes[this.at++];
      if (b === undefined) throw new Error("a tile of the map ends early");
      n += (b & 127) * factor;
      if (b < 128) return n;
    }
  }

  // signed is a number whose lowest bit is its sign.
  signed(): number {
    const n = this.varint();
    return n % 2 ? -(n + 1) / 2 : n / 2;
  }

  text(end: number): string { return decoder.decode(this.bytes.subarray(this.at, end)); }

  // fields calls take for each field up to an end: with a number, or with the end of what the field holds.
  fields(end: number, take: (field: number, value: number) => void): void {
    while (this.at < end) {
      const key = this.varint(), field = key >> 3;
      switch (key & 7) {
        case 0: take(field, this.varint()); break;
        case 1: this.at += 8; take(field, this.view.getFloat64(this.at - 8, true)); break;
        case 5: this.at += 4; take(field, this.view.getFloat32(this.at - 4, true)); break;
        case 2: {
          const length = this.varint(), stop = this.at + length;
          if (stop > end) throw new Error("a tile of the map is damaged");
          take(field, stop);
          this.at = stop;
          break;
        }
        default: throw new Error("a tile of the map is damaged");
      }
    }
  }
}

const decoder = new TextDecoder();

// Tile holds the layers of a vector tile.
export class Tile {
  readonly layers = new Map<string, Layer>();
  private message: Message;

  // wanted names the properties to keep.
  constructor(bytes: Uint8Array, wanted: Set<string>) {
    const m = (this.message = new Message(bytes));
    m.fields(bytes.length, (field, end) => {
      if (field !== 3) return;
      const layer = layerOf(m, end, wanted);
      this.layers.set(layer.name, layer);
    });
  }

  // trace draws the geometry of a feature: each place times scale, and moved.
  trace(f: Feature, pen: Pen, scale: number, left: number, top: number): void {
    const m = this.message;
    let x = 0, y = 0;
    m.at = f.from;
    while (m.at < f.to) {
      const command = m.varint();
      if ((command & 7) === 7) { pen.closePath(); continue; }
      for (let n = command >> 3; n > 0; n--) {
        x += m.signed();
        y += m.signed();
        if ((command & 7) === 1) pen.moveTo(x * scale + left, y * scale + top); else pen.lineTo(x * scale + left, y * scale + top);
      }
    }
  }
}

function layerOf(m: Message, end: number, wanted: Set<string>): Layer {
  const layer: Layer = { name: "", extent: 4096, features: [] }, keys: string[] = [], values: Value[] = [], found: [number, number][] = [];
  m.fields(end, (field, value) => {
    switch (field) {
      case 1: layer.name = m.text(value); break;
      case 2: found.push([m.at, value]); break;
      case 3: keys.push(m.text(value)); break;
      case 4: values.push(valueOf(m, value)); break;
      case 5: layer.extent = value; break;
    }
  });
  // Keys and values may follow the features that use them.
  layer.features = found.map(([from, to]) => {
    const f: Feature = { type: 0, has: {}, from: 0, to: 0 };
    m.at = from;
    m.fields(to, (field, value) => {
      switch (field) {
        case 2:
          while (m.at < value) {
            const key = keys[m.varint()], v = values[m.varint()];
            if (wanted.has(key)) f.has[key] = v;
          }
          break;
        case 3: f.type = value; break;
        case 4: f.from = m.at; f.to = value; break;
      }
    });
    return f;
  });
  return layer;
}

function valueOf(m: Message, end: number): Value {
  let v: Value = "";
  m.fields(end, (field, value) => {
    switch (field) {
      case 1: v = m.text(value); break;
      case 4: v = value < 2 ** 63 ? value : value - 2 ** 64; break; // int64
      case 6: v = value % 2 ? -(value + 1) / 2 : value / 2; break; // sint64
      case 7: v = value !== 0; break;
      default: v = value; // float, double, uint64
    }
  });
  return v;
}
