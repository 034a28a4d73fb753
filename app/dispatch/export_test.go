package dispatch

import "time"

// Age makes the memory older: the last record of cycles without orders is longer ago.
func (m *Memory) Age(by time.Duration) { m.quietAt = m.quietAt.Add(-by) }
