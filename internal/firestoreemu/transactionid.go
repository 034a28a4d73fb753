package firestoreemu

import (
	"encoding/binary"
	"hash/crc32"
)

// Transaction ids carry the server's boot epoch, a counter and a checksum over
// both and the database's name, so that an id of an earlier boot is told from
// garbage and from an id of another database (E-TX-01).
const idSize = 8 + 8 + 4

func encodeID(epoch, counter uint64, database string) []byte {
	id := make([]byte, 0, idSize)
	id = binary.BigEndian.AppendUint64(id, epoch)
	id = binary.BigEndian.AppendUint64(id, counter)
	return binary.BigEndian.AppendUint32(id, checksum(id, database))
}

// decodeID reports false for bytes that no server issued for this database.
func decodeID(id []byte, database string) (epoch, counter uint64, ok bool) {
	if len(id) != idSize {
		return 0, 0, false
	}
	sum := binary.BigEndian.Uint32(id[16:])
	if sum != checksum(id[:16], database) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:]), true
}

func checksum(id []byte, database string) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(id), crc32.IEEETable, []byte(database))
}
