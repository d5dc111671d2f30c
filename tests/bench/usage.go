package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cost is what the service and its Postgres have used so far, or in a time span.
type cost struct {
	at       time.Time
	crier    time.Duration // processor time of the service
	postgres time.Duration
	// platform is the processor time of this process: the platform and the clients.
	platform   time.Duration
	statements int64
	// peak is in MB: the maximum of one process of the service since its start.
	peak float64
}

// cost reads the counters. It adds up the given processes and takes the highest of their peaks.
func (b *testDB) cost(ctx context.Context, nodes ...*node) (c cost, err error) {
	c.at = now()
	for _, n := range nodes {
		peak, err := peakOf(n.cmd.Process.Pid)
		if err != nil {
			return c, err
		}
		c.crier, c.peak = c.crier+usageOf(n.cmd.Process.Pid).cpu, max(c.peak, peak)
	}
	c.postgres = treeOf(b.server.PID())
	c.platform = usageOf(os.Getpid()).cpu
	c.statements, err = b.statements(ctx)
	return c, err
}

// since returns what was used between two readings, with the peak of the later one.
func (c cost) since(before cost) cost {
	return cost{
		at: c.at, crier: c.crier - before.crier, postgres: c.postgres - before.postgres,
		platform: c.platform - before.platform, statements: c.statements - before.statements, peak: c.peak,
	}
}

// addTo adds the cost per post and the peak to a line.
func (c cost) addTo(line m, posts int) {
	per := func(d time.Duration) float64 { return ms(d) / float64(posts) }
	line["cpuMsPerPost"], line["cpuMsPerPostCrier"], line["cpuMsPerPostPostgres"] = per(c.cpu()), per(c.crier),
		per(c.postgres)
	line["platformCpuMsPerPost"] = per(c.platform)
	line["statementsPerPost"], line["peakMb"] = float64(c.statements)/float64(posts), c.peak
}

// less subtracts what an idle span of length idleSpan used, scaled to span.
func (c cost) less(idle cost, span, idleSpan time.Duration) cost {
	f := span.Seconds() / idleSpan.Seconds()
	c.crier -= time.Duration(f * float64(idle.crier))
	c.postgres -= time.Duration(f * float64(idle.postgres))
	c.platform -= time.Duration(f * float64(idle.platform))
	c.statements -= int64(f * float64(idle.statements))
	return c
}

// cpu returns the processor time of the service and Postgres.
func (c cost) cpu() time.Duration { return c.crier + c.postgres }

// usage is what a process has used so far.
type usage struct {
	rss float64 // MB
	cpu time.Duration
}

// peakOf returns the peak memory of a process, in MB.
func peakOf(pid int) (float64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseFloat(strings.Fields(after + " none")[0], 64)
	return kb / 1024, err
}

// usageOf reads /proc. It returns zero if the process has ended.
func usageOf(pid int) (u usage) {
	// The pattern is well formed.
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	for _, path := range threads {
		b, _ := os.ReadFile(path) // empty if the thread has ended
		on, _, _ := strings.Cut(string(b), " ")
		ns, _ := strconv.ParseInt(on, 10, 64) // the kernel writes numbers
		u.cpu += time.Duration(ns)
	}
	if f := statOf(pid); f != nil {
		u.rss = float64(f.number(21)) * float64(os.Getpagesize()) / (1 << 20)
	}
	return u
}

const tick = 10 * time.Millisecond // of /proc/<pid>/stat

// treeOf returns the processor time of a process and its children, including children that have
// ended.
func treeOf(pid int) time.Duration {
	sum := usageOf(pid).cpu
	if f := statOf(pid); f != nil {
		sum += time.Duration(f.number(13)+f.number(14)) * tick
	}
	// The pattern is well formed.
	children, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, path := range children {
		list, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(list)) {
			c, _ := strconv.Atoi(child) // the kernel writes numbers
			sum += usageOf(c).cpu
		}
	}
	return sum
}

// stat has the fields of /proc/<pid>/stat, beginning with state.
type stat []string

func statOf(pid int) stat {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

func (s stat) number(i int) int64 {
	n, _ := strconv.ParseInt(s[i], 10, 64) // the kernel writes numbers
	return n
}
