package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is processor time.
type usage struct{ worker, backends time.Duration }

func (u usage) sum() time.Duration { return u.worker + u.backends }

// meter reads what a process and the backends of a server have used.
type meter struct {
	worker int // process id, 0 = this process
	server int
	begin  usage
	pids   map[int]time.Duration
}

func newMeter(worker, server int) (*meter, error) {
	m := &meter{worker: worker, server: server}
	var err error
	if m.begin.worker, err = m.ofWorker(); err != nil {
		return nil, err
	}
	m.pids, err = backends(server)
	return m, err
}

// read gives what was used since the meter was made.
func (m *meter) read() (usage, error) {
	w, err := m.ofWorker()
	if err != nil {
		return usage{}, err
	}
	now, err := backends(m.server)
	if err != nil {
		return usage{}, err
	}
	u := usage{worker: w - m.begin.worker}
	for pid, used := range now {
		u.backends += used - m.pids[pid]
	}
	return u, nil
}

func (m *meter) ofWorker() (time.Duration, error) {
	if m.worker != 0 {
		u, _, err := stat(m.worker)
		return u, err
	}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// backends gives what each client connection's process of a server has used; the server's background processes are left out.
func backends(server int) (map[int]time.Duration, error) {
	out := map[int]time.Duration{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		_, parent, err := stat(pid)
		if err != nil || parent != server {
			continue // ended meanwhile, or a stranger
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.HasPrefix(line, []byte("postgres: postgres ")) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "schedstat"))
		if err != nil {
			continue
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s/schedstat: %w", dir, err)
		}
		out[pid] = time.Duration(ns)
	}
	return out, nil
}

// stat gives a process's user and system time, in hundredths of a second as the kernel tells it, and its parent.
func stat(pid int) (used time.Duration, parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 13 {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(f))
	}
	parent, err = strconv.Atoi(f[1])
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err != nil || err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("/proc/%d/stat: no numbers", pid)
	}
	return time.Duration(user+system) * 10 * time.Millisecond, parent, nil
}

// resident gives the bytes of a process that are in memory.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
