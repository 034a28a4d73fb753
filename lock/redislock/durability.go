package redislock

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// CheckDurability returns the server's settings with which fences may repeat or leases be
// forgotten, each with what to set instead. None means that the server is as safe as Redis can
// be, not that it loses nothing.
func (b *Backend) CheckDurability(ctx context.Context) ([]string, error) {
	info, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (string, error) {
		return b.client.Info(ctx).Result()
	})
	if err != nil {
		return nil, classify(ctx, err).At("checkDurability", "", "")
	}
	found := losses(info, b.cfg.Replicas)
	if b.writesLate(ctx) {
		found = append(found, "appendfsync is not always: after a crash of the machine, or of the server while its disk is busy, the fences of up to two seconds are issued again; set appendfsync always")
	}
	return found, nil
}

// writesLate tells whether the server logs its writes, but answers before they are on disk. A
// server that hides its settings is taken to be set well.
func (b *Backend) writesLate(ctx context.Context) bool {
	settings, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (map[string]string, error) {
		return b.client.ConfigGet(ctx, "append*").Result()
	})
	return err == nil && settings["appendonly"] == "yes" && settings["appendfsync"] != "always"
}

// warnOfLosses logs what CheckDurability finds.
func (b *Backend) warnOfLosses(ctx context.Context) {
	found, err := b.CheckDurability(ctx)
	if err != nil {
		b.log.Warn("checking the durability of locks failed", slog.Any("err", err))
		return
	}
	for _, loss := range found {
		b.log.Warn("locks may be lost", slog.String("reason", loss))
	}
}

// losses judges what INFO says.
func losses(info string, replicas int) (found []string) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	if fields["role"] == "slave" {
		return []string{errReplica.Error()}
	}
	if fields["aof_enabled"] == "0" {
		found = append(found, "appendonly is off: after a restart the fences since the last snapshot are issued again; set appendonly yes, and appendfsync always to survive a crash of the machine")
	}
	if policy := fields["maxmemory_policy"]; fields["maxmemory"] != "0" && policy != "" && policy != "noeviction" {
		found = append(found, fmt.Sprintf("maxmemory-policy is %s: locks or fence counters may be evicted; set noeviction", policy))
	}
	if n, err := strconv.Atoi(fields["connected_slaves"]); err == nil && n > 0 && replicas == 0 {
		found = append(found, fmt.Sprintf("%d replicas are not waited for: after a failover the newest fences are issued again; set Config.Replicas", n))
	}
	return found
}
