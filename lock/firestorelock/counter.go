package firestorelock

// CounterPath is the path, from the root of the database, of the document that counts the
// fences of a key. Resources in the same database can read it in their own transactions, with
// [CounterValue], to check that a fence was issued. A key that cannot be locked is
// ErrInvalidArgument.
func (c Config) CounterPath(key string) (string, error) {
	b := Backend{
		cfg:         c,
		lockPath:    orDefault(c.Collection, DefaultCollection),
		counterPath: orDefault(c.FenceCollection, DefaultFenceCollection),
	}
	if err := checkCollections(b.lockPath, b.counterPath); err != nil {
		return "", err
	}
	_, _, counter, err := b.ids(key)
	if err != nil {
		return "", err
	}
	return b.counterPath + "/" + counter, nil
}

// CounterValue is the highest fence that was issued, from the content of the document at
// [Config.CounterPath]; ErrInternal if it cannot be read. Without a document no fence was
// issued, unless by SyncGuard 1.x.
func CounterValue(data map[string]any) (int64, error) { return decodeCounter(data) }
