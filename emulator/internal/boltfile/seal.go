package boltfile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// sealSize is what a seal adds to a value: a CRC-32C of the key and the value,
// big endian, before the value.
const sealSize = 4

// ErrDamaged says that a record is not the one that was written. It reads as the
// end of a sentence that names the record.
var ErrDamaged = errors.New("is damaged; restore the file from a copy or choose another data directory")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Unsealed returns room for a checksum, with capacity for size bytes more. Append
// the value to it and call Seal.
func Unsealed(size int) []byte { return make([]byte, sealSize, sealSize+size) }

// Seal fills in the checksum of a value that was appended to Unsealed, and
// returns the value to store. bbolt keeps no checksums: without one, a flipped
// bit inside a value is served as if it had been written.
func Seal(key, value []byte) []byte {
	binary.BigEndian.PutUint32(value, checksum(key, value[sealSize:]))
	return value
}

// Unseal returns the value that was sealed under the key, or ErrDamaged.
func Unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) < sealSize || binary.BigEndian.Uint32(sealed) != checksum(key, sealed[sealSize:]) {
		return nil, ErrDamaged
	}
	return sealed[sealSize:], nil
}

// ChecksumOf returns the checksum in a sealed value of at least Unsealed's length.
func ChecksumOf(sealed []byte) uint32 { return binary.BigEndian.Uint32(sealed) }

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}
