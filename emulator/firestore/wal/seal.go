package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Every value in the file is sealed: it begins with a checksum of its key and of
// what follows. bbolt has none, and a flipped bit inside a string would be served
// as if it had been written.
const sealSize = 4

var (
	errDamaged = errors.New("is damaged: its checksum does not match; restore the file from a copy or choose another data directory")
	// The name of a database has no checksum. One that became another would make all
	// that is in it seem to be gone.
	errForeign    = errors.New("stands in another database, whose name may be damaged; restore the file from a copy or choose another data directory")
	errNoDatabase = errors.New("is damaged: it is marked as a value; restore the file from a copy or choose another data directory")
	errUnsealed   = errors.New("was written by an earlier version, which kept no checksums; choose another data directory")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unsealed is room for the checksum; what is appended to it can be sealed.
func unsealed() []byte { return make([]byte, sealSize) }

// seal fills in the checksum.
func seal(key, value []byte) []byte {
	binary.BigEndian.PutUint32(value, checksum(key, value[sealSize:]))
	return value
}

// unseal returns what was sealed, or errDamaged.
func unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) < sealSize || binary.BigEndian.Uint32(sealed) != checksum(key, sealed[sealSize:]) {
		return nil, errDamaged
	}
	return sealed[sealSize:], nil
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}
