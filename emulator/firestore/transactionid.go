package firestoreemu

import (
	"encoding/binary"
	"hash/crc32"
)

// A transaction id consists of the server's epoch, a counter, the transaction's
// mode, and a checksum over these and the database's name. So an id from before a
// restart can be told from garbage and from an id of another database (E-TX-01).
const idSize = 8 + 8 + 1 + 4

type transactionID struct {
	epoch, counter uint64
	mode           mode
}

func (id transactionID) encode(database string) []byte {
	raw := make([]byte, 0, idSize)
	raw = binary.BigEndian.AppendUint64(raw, id.epoch)
	raw = binary.BigEndian.AppendUint64(raw, id.counter)
	raw = append(raw, byte(id.mode))
	return binary.BigEndian.AppendUint32(raw, checksum(raw, database))
}

// decodeID reports false if no server issued the bytes for this database.
func decodeID(raw []byte, database string) (id transactionID, ok bool) {
	if len(raw) != idSize {
		return transactionID{}, false
	}
	const sum = idSize - 4
	if binary.BigEndian.Uint32(raw[sum:]) != checksum(raw[:sum], database) {
		return transactionID{}, false
	}
	return transactionID{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:]), mode(raw[16])}, true
}

func checksum(id []byte, database string) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(id), crc32.IEEETable, []byte(database))
}
