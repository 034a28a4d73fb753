// The body of the function report(data): a message of the topic telemetry as a row, NULL if it cannot be
// read. BigQuery has no function for protobuf. Terraform puts the numbers and names of the fields in.
const fields = FIELDS;

function bytesOf(base64) {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const bytes = [];
  let bits = 0, n = 0;
  for (const c of base64) {
    if (c === "=") break;
    bits = ((bits << 6) | digits.indexOf(c)) & 0xffff;
    n += 6;
    if (n >= 8) bytes.push((bits >> (n -= 8)) & 0xff);
  }
  return bytes;
}

function text(bytes) {
  return decodeURIComponent(bytes.map((b) => "%" + b.toString(16).padStart(2, "0")).join(""));
}

// absent is what a field without a value stands for.
function absent(f) {
  if (f.optional || f.type === "message" || f.type === "time") return null;
  return { string: "", bool: false, enum: f.values && f.values[0] }[f.type] ?? 0;
}

function decode(bytes, fields) {
  let at = 0;
  const take = (n) => {
    if (at + n > bytes.length) throw new Error("the message ends too early");
    return bytes.slice(at, (at += n));
  };
  const varint = () => {
    for (let n = 0n, shift = 0n; ; shift += 7n) {
      const [b] = take(1);
      n |= BigInt(b & 127) << shift;
      if (b < 128) return n;
    }
  };
  const row = {};
  for (const f of Object.values(fields)) row[f.name] = absent(f);
  while (at < bytes.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    const value = wire === 0 ? varint() : wire === 1 ? take(8) : wire === 2 ? take(Number(varint())) : wire === 5 ? take(4) : null;
    if (value === null) throw new Error("not protobuf");
    const f = fields[tag >> 3];
    if (f) row[f.name] = fromWire(f, value);
  }
  return row;
}

function fromWire(f, value) {
  switch (f.type) {
    case "double":
      return new DataView(new Uint8Array(value).buffer).getFloat64(0, true);
    case "int":
      return Number(BigInt.asIntN(64, value));
    case "bool":
      return value !== 0n;
    case "enum":
      return f.values[Number(value)] ?? String(value);
    case "time": {
      const t = decode(value, { 1: { name: "seconds", type: "int" }, 2: { name: "nanos", type: "int" } });
      return new Date(t.seconds * 1000 + t.nanos / 1e6);
    }
    case "message":
      return decode(value, f.fields);
  }
  return text(value);
}

function fromJSON(object, fields) {
  const row = {};
  for (const f of Object.values(fields)) {
    const value = object[f.name] ?? object[f.json];
    row[f.name] = value === undefined || value === null ? absent(f) : fromJSONValue(f, value);
  }
  return row;
}

function fromJSONValue(f, value) {
  switch (f.type) {
    case "double":
    case "int":
      return Number(value);
    case "enum":
      return f.values[value] ?? String(value).replace(f.prefix, "");
    case "time":
      return new Date(value);
    case "message":
      return fromJSON(value, f.fields);
  }
  return value;
}

try {
  const bytes = bytesOf(data);
  // No message of protobuf begins with a brace: that would be a group.
  return bytes[0] === 0x7b ? fromJSON(JSON.parse(text(bytes)), fields) : decode(bytes, fields);
} catch (e) {
  return null;
}
