package firestorelock

// CounterPath is the path, from the root of the database, of the document that counts
// the fences of a key, as a Backend of this configuration keeps it. It is for
// resources in the same database that check in their own transactions whether a
// fence was handed out; [CounterValue] reads the document. A key that no Backend of
// this configuration can lock is ErrInvalidArgument.
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

// CounterValue is the highest fence that was handed out, from the content of the
// document at [Config.CounterPath]. A counter that cannot be read is ErrInternal. Where
// the document does not exist no fence was handed out, unless by SyncGuard 1.x.
func CounterValue(data map[string]any) (int64, error) { return decodeCounter(data) }
