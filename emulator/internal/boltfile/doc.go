// Package boltfile opens the bbolt files of the embedded servers and seals their
// records. It finds what bbolt does not look for: a file that was emptied or cut
// short, a damaged page, a flipped bit in a record.
//
// It knows nothing of what the records mean and must import nothing of this
// module. Open fails with ErrInUse or ErrDamaged, the path and, where one is
// damaged, the page; Unseal fails with ErrDamaged, and its caller names the record.
package boltfile
