package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout of a bbolt file, in the byte order of the machine that wrote it. A
// page is a header, the number of elements that it gives, and the keys and values
// they point to. A bucket's value begins with the page of its root and a sequence
// number; if that page is 0, the bucket's only page follows.
const (
	headerSize  = 16 // id uint64, flags uint16, elements uint16, further pages uint32
	elementSize = 16 // branch: position, key's size, child uint64; leaf: flags, position, key's size, value's size
	bucketSize  = 16

	metaPages = 2  // the file's first; transactions write them in turn
	metaSize  = 56 // up to its checksum uint64

	branchFlag = 1 // of a page
	leafFlag   = 2
	bucketFlag = 1 // of a leaf's element
)

var order = binary.NativeEndian

// checkMetas checks both meta pages. bbolt is content with one: when the newer one
// is damaged it goes back to the older one, without what was committed last.
func checkMetas(file io.ReaderAt, pageSize int64) error {
	meta := make([]byte, metaSize+8)
	for page := range int64(metaPages) {
		if _, err := file.ReadAt(meta, page*pageSize+headerSize); err != nil {
			return damaged(err)
		}
		sum := fnv.New64a()
		_, _ = sum.Write(meta[:metaSize])
		if sum.Sum64() != order.Uint64(meta[metaSize:]) {
			return damaged(fmt.Sprintf("the checksum of page %d does not match", page))
		}
	}
	return nil
}

// tree checks the pages of a file that carry no checksums.
type tree struct {
	file     io.ReaderAt
	pageSize int64
	used     []bool // by page
}

type element struct {
	key, value []byte
	child      uint64 // a branch's
	bucket     bool
}

// check reads a page and all below it. Unless nil, first must be the page's first
// key, by which bbolt finds the page in the branch above, and every key must be
// less than high.
func (t *tree) check(id uint64, first, high []byte) error {
	page, err := t.read(id)
	if err != nil {
		return err
	}
	return t.checkPage(page, first, high)
}

// read returns a page together with the pages that it overflows into.
func (t *tree) read(id uint64) ([]byte, error) {
	if id >= uint64(len(t.used)) {
		return nil, damaged(fmt.Sprintf("page %d of %d", id, len(t.used)))
	}
	header := make([]byte, headerSize)
	if _, err := t.file.ReadAt(header, int64(id)*t.pageSize); err != nil {
		return nil, damaged(err)
	}
	end := id + uint64(order.Uint32(header[12:])) + 1
	if written := order.Uint64(header); written != id || end > uint64(len(t.used)) {
		return nil, damaged(fmt.Sprintf("page %d calls itself %d and ends at %d", id, written, end))
	}
	for i := id; i < end; i++ {
		if t.used[i] {
			return nil, damaged(fmt.Sprintf("page %d is used twice", i))
		}
		t.used[i] = true
	}
	page := make([]byte, int64(end-id)*t.pageSize)
	if _, err := t.file.ReadAt(page, int64(id)*t.pageSize); err != nil {
		return nil, damaged(err)
	}
	return page, nil
}

func (t *tree) checkPage(page, first, high []byte) error {
	elements, err := parse(page)
	if err != nil {
		return err
	}
	if first != nil && (len(elements) == 0 || !bytes.Equal(elements[0].key, first)) {
		return damaged(fmt.Sprintf("the first of %d keys of a page is not %x", len(elements), first))
	}
	var before []byte
	for _, e := range elements { // none is empty
		if bytes.Compare(e.key, before) <= 0 || high != nil && bytes.Compare(e.key, high) >= 0 {
			return damaged(fmt.Sprintf("key %x is not between %x and %x", e.key, before, high))
		}
		before = e.key
	}
	for i, e := range elements {
		below := high
		if i+1 < len(elements) {
			below = elements[i+1].key
		}
		if err := t.checkBelow(e, below); err != nil {
			return err
		}
	}
	return nil
}

// checkBelow checks what hangs on an element; high is the next key.
func (t *tree) checkBelow(e element, high []byte) error {
	switch {
	case e.child != 0:
		return t.check(e.child, e.key, high)
	case !e.bucket:
		return nil
	case len(e.value) < bucketSize:
		return damaged(fmt.Sprintf("bucket %x of %d bytes", e.key, len(e.value)))
	}
	if root := order.Uint64(e.value); root != 0 {
		return t.check(root, nil, nil)
	}
	return t.checkPage(e.value[bucketSize:], nil, nil)
}

// parse returns a page's elements. bbolt writes their keys and values right behind
// them without gaps, and zeros after that: anything else means that elements are
// missing or wrong.
func parse(page []byte) ([]element, error) {
	if len(page) < headerSize {
		return nil, damaged(fmt.Sprintf("a page of %d bytes", len(page)))
	}
	flags, count := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	isBranch := flags == branchFlag
	if !isBranch && flags != leafFlag || isBranch && count == 0 || headerSize+count*elementSize > len(page) {
		return nil, damaged(fmt.Sprintf("a page of kind %d with %d elements", flags, count))
	}
	elements := make([]element, count)
	behind := uint64(headerSize + count*elementSize)
	for i := range elements {
		at := headerSize + i*elementSize
		var word [4]uint64
		for j := range word {
			word[j] = uint64(order.Uint32(page[at+4*j:]))
		}
		var e element
		var position, keySize, valueSize uint64
		if isBranch {
			position, keySize, e.child = word[0], word[1], order.Uint64(page[at+8:])
		} else {
			e.bucket = word[0]&bucketFlag != 0
			position, keySize, valueSize = word[1], word[2], word[3]
		}
		start := uint64(at) + position
		if keySize == 0 || start != behind || start+keySize+valueSize > uint64(len(page)) || isBranch && e.child == 0 {
			return nil, damaged(fmt.Sprintf("element %d of a page of %d bytes: %d", i, len(page), word))
		}
		behind = start + keySize + valueSize
		e.key, e.value = page[start:start+keySize], page[start+keySize:behind]
		elements[i] = e
	}
	if len(bytes.Trim(page[behind:], "\x00")) > 0 {
		return nil, damaged(fmt.Sprintf("a page holds more than its %d elements", count))
	}
	return elements, nil
}
